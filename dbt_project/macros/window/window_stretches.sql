{#
    The window in stretches of whole days (first day, day after the last), for what adds up more rows than fit into memory and needs no
    row of another day: a day at a time it stays small, whatever the window's length. A longer window has longer stretches, so
    that a query has no more branches. BigQuery spreads its work itself and has a single one.
#}
{% macro window_stretches() -%} {{ return(adapter.dispatch("window_stretches", "apportion")()) }} {%- endmacro %}

{% macro default__window_stretches() -%} {{ return([(var("window_start"), var("window_end"))]) }} {%- endmacro %}

{% macro duckdb__window_stretches() -%}
    {%- set most_stretches = 14 -%}
    {%- set start = modules.datetime.date.fromisoformat(var("window_start")) -%}
    {%- set days = days_between((var("window_start"), var("window_end"))) -%}
    {%- set length = [1, (days + most_stretches - 1) // most_stretches] | max -%}
    {%- set found = [] -%}
    {%- for first in range(0, [1, days] | max, length) -%}
        {%- set last = [first + length, days] | min -%}
        {%- do found.append((
            (start + modules.datetime.timedelta(days=first)).isoformat(), (start + modules.datetime.timedelta(days=last)).isoformat()
        )) -%}
    {%- endfor -%}
    {{ return(found) }}
{%- endmacro %}
