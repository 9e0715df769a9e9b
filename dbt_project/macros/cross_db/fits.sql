{# Whether a text fits a LIKE pattern, in which % and _ are the only signs with a meaning: `CORP\ana` is just a name. #}
{% macro fits(text, pattern) -%}
    {{ return(adapter.dispatch("fits", "apportion")(text, pattern)) }}
{%- endmacro %}

{% macro default__fits(text, pattern) -%}
    {{ text }} like replace({{ pattern }}, '\\', '\\\\')
{%- endmacro %}
{% macro duckdb__fits(text, pattern) -%} {{ text }} like {{ pattern }} {%- endmacro %}
