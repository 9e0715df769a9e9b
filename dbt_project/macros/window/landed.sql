{#
    A landed table, for a model that keeps the window's days of it. On DuckDB it names the folders of those days: over all
    days DuckDB guesses how many rows there are from the very first file, and when the window leaves that one out, it
    takes the largest table for an empty one and joins in the wrong order. The last folder is the one that only has columns.
#}
{% macro landed(table) -%}
    {{ return(adapter.dispatch("landed", "apportion")(source("landing", table))) }}
{%- endmacro %}

{% macro default__landed(relation) -%} {{ return(relation) }} {%- endmacro %}

{% macro duckdb__landed(relation) -%}
    {%- set all_days = relation | string -%}
    {%- if not execute or "/date=*/" not in all_days -%} {{ return(relation) }} {%- endif -%}
    {%- set every_file = all_days.split("'")[1] -%}
    {%- set folders = run_query(
        "with files as (select regexp_extract(file, '.*date=([0-9-]+)', 1) as day from glob('" ~ every_file ~ "')) "
        "select distinct day from files where " ~ in_window("cast(day as date)") ~ " or day = '9999-12-31' order by day"
    ).columns[0].values() -%}
    {%- set patterns = [] -%}
    {%- for day in folders -%}
        {%- do patterns.append("'" ~ every_file.replace("date=*", "date=" ~ day) ~ "'") -%}
    {%- endfor -%}
    {{ return(all_days.replace("'" ~ every_file ~ "'", "[" ~ patterns | join(", ") ~ "]")) }}
{%- endmacro %}
