{#
    A landed table, for a model that keeps the window's days of it, or some of them (`days`, as `window_stretches` gives them). On DuckDB
    it names the folders of those days: over all days DuckDB guesses how many rows there are from the very first file, and when
    the window leaves that one out, it takes the largest table for an empty one and joins in the wrong order. The last folder is
    the one that only has columns.
    A single day is read file by file: of a file that is read by itself DuckDB knows the least and the greatest value of each
    column, so it need not ask of every row whether a gauge is in its range, and can keep what it groups by in a byte.
#}
{% macro landed(table, days=none) -%}
    {{ return(adapter.dispatch("landed", "apportion")(source("landing", table), days)) }}
{%- endmacro %}

{% macro default__landed(relation, days) -%} {{ return(relation) }} {%- endmacro %}

{% macro duckdb__landed(relation, days) -%}
    {%- set all_days = relation | string -%}
    {%- if not execute or "/date=*/" not in all_days -%} {{ return(relation) }} {%- endif -%}
    {%- set every_file = all_days.split("'")[1] -%}
    {%- set day = "cast(regexp_extract(file, '.*date=([0-9-]+)', 1) as date)" -%}
    {%- set found = run_query(
        "select cast(" ~ day ~ " as varchar) as day, file from glob('" ~ every_file ~ "') where "
        ~ (in_days(day, days) if days else in_window(day)) ~ " or " ~ day ~ " = date '9999-12-31' order by all"
    ).rows -%}
    {%- if days and days_between(days) == 1 and found | length > 1 -%}
        {%- set reads = [] -%}
        {%- for row in found if row[0] != "9999-12-31" -%}
            {%- do reads.append("select * from " ~ all_days.replace(every_file, row[1])) -%}
        {%- endfor -%}
        {{ return("(" ~ reads | join(" union all by name ") ~ ")") }}
    {%- endif -%}
    {%- set patterns = [] -%}
    {%- for day in found | map(attribute=0) | unique -%}
        {%- do patterns.append("'" ~ every_file.replace("date=*", "date=" ~ day) ~ "'") -%}
    {%- endfor -%}
    {{ return(all_days.replace("'" ~ every_file ~ "'", "[" ~ patterns | join(", ") ~ "]")) }}
{%- endmacro %}
