{# A text as a JSON string, with its quotes: names are whatever people type. #}
{% macro json_text(text) -%}
    {{ return(adapter.dispatch("json_text", "apportion")(text)) }}
{%- endmacro %}

{% macro default__json_text(text) -%} to_json_string({{ text }}) {%- endmacro %}
{% macro duckdb__json_text(text) -%} cast(to_json({{ text }}) as varchar) {%- endmacro %}
