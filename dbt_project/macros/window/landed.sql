{#
    A landed table, for a model that keeps the window's days of it. On DuckDB it names the files of those days: over all
    days DuckDB guesses how many rows there are from the very first file, and when the window leaves that one out, it
    takes the largest table for an empty one and joins in the wrong order. The last folder is the one that only has columns.
    Of a file read by itself DuckDB knows the least and the greatest value of each column, so it need not ask of every row
    whether a gauge is in its range and can keep what it groups by in a byte. `one_by_one` reads the files so; it pays for
    the largest table and would cost the small ones more than they save.
#}
{% macro landed(table, one_by_one=false) -%}
    {{ return(adapter.dispatch("landed", "apportion")(source("landing", table), one_by_one)) }}
{%- endmacro %}

{% macro default__landed(relation, one_by_one) -%} {{ return(relation) }} {%- endmacro %}

{% macro duckdb__landed(relation, one_by_one) -%}
    {%- set all_days = relation | string -%}
    {%- if not execute or "/date=*/" not in all_days -%} {{ return(relation) }} {%- endif -%}
    {%- set every_file = all_days.split("'")[1] -%}
    {%- set found = run_query(
        "with files as (select file, regexp_extract(file, '.*date=([0-9-]+)', 1) as day from glob('" ~ every_file ~ "')) "
        "select " ~ ("file" if one_by_one else "distinct day") ~ ", day < '9999' as has_rows from files "
        "where " ~ in_window("cast(day as date)") ~ " or day = '9999-12-31' order by 1"
    ) -%}
    {%- if one_by_one -%}
        {%- set reads = [] -%}
        {%- for file, has_rows in found.rows if has_rows or found.rows | length == 1 -%}
            {%- do reads.append("select * from " ~ all_days.replace(every_file, file)) -%}
        {%- endfor -%}
        {{ return("(" ~ reads | join(" union all by name ") ~ ")") }}
    {%- endif -%}
    {%- set patterns = [] -%}
    {%- for day in found.columns[0].values() -%}
        {%- do patterns.append("'" ~ every_file.replace("date=*", "date=" ~ day) ~ "'") -%}
    {%- endfor -%}
    {{ return(all_days.replace("'" ~ every_file ~ "'", "[" ~ patterns | join(", ") ~ "]")) }}
{%- endmacro %}
