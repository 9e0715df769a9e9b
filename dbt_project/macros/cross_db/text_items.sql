{# Joins each row with the items of a comma-separated text column. #}
{% macro cross_join_items(text, column) -%}
    {{ return(adapter.dispatch("cross_join_items", "apportion")(text, column)) }}
{%- endmacro %}

{% macro default__cross_join_items(text, column) -%}
    cross join unnest(split({{ text }}, ',')) as {{ column }}
{%- endmacro %}

{% macro duckdb__cross_join_items(text, column) -%}
    cross join unnest(string_split({{ text }}, ',')) as {{ column }}_items({{ column }})
{%- endmacro %}
