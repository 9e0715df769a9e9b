{# Joins each row with the keys of a flat JSON object held as text, and reads one of its values. #}
{% macro cross_join_json_keys(json_text, column) -%}
    {{ return(adapter.dispatch("cross_join_json_keys", "apportion")(json_text, column)) }}
{%- endmacro %}

{% macro default__cross_join_json_keys(json_text, column) -%}
    cross join unnest(json_keys(parse_json({{ json_text }}), 1)) as {{ column }}
{%- endmacro %}

{% macro duckdb__cross_join_json_keys(json_text, column) -%}
    cross join unnest(json_keys({{ json_text }})) as {{ column }}_keys({{ column }})
{%- endmacro %}

{% macro json_text_value(json_text, key) -%}
    {{ return(adapter.dispatch("json_text_value", "apportion")(json_text, key)) }}
{%- endmacro %}

{% macro default__json_text_value(json_text, key) -%}
    json_value(parse_json({{ json_text }})[{{ key }}])
{%- endmacro %}

{% macro duckdb__json_text_value(json_text, key) -%}
    json_extract_string({{ json_text }}, '$."' || {{ key }} || '"')
{%- endmacro %}
