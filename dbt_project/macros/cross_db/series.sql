{# Joins each row with the whole numbers from `first` up to, not including, `last`, in steps: hours of a job, days of a window. #}
{% macro cross_join_series(first, last, step, column) -%}
    {{ return(adapter.dispatch("cross_join_series", "apportion")(first, last, step, column)) }}
{%- endmacro %}

{% macro default__cross_join_series(first, last, step, column) -%}
    cross join unnest(generate_array({{ first }}, {{ last }} - 1, {{ step }})) as {{ column }}
{%- endmacro %}

{% macro duckdb__cross_join_series(first, last, step, column) -%}
    cross join unnest(range({{ first }}, {{ last }}, {{ step }})) as {{ column }}_series({{ column }})
{%- endmacro %}
