{# How many days there are from the first to the day before the second. #}
{% macro days_between(days) -%}
    {%- set date = modules.datetime.date -%}
    {{ return((date.fromisoformat(days[1]) - date.fromisoformat(days[0])).days) }}
{%- endmacro %}
