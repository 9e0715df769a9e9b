{# The first day of a day's month. #}
{% macro month_of(date_column) -%}
    {{ return(adapter.dispatch("month_of", "apportion")(date_column)) }}
{%- endmacro %}

{% macro default__month_of(date_column) -%} cast(date_trunc({{ date_column }}, month) as date) {%- endmacro %}
{% macro duckdb__month_of(date_column) -%} cast(date_trunc('month', {{ date_column }}) as date) {%- endmacro %}

{# ISO weekday: Monday is 1, Sunday is 7. #}
{% macro weekday_of(date_column) -%}
    {{ return(adapter.dispatch("weekday_of", "apportion")(date_column)) }}
{%- endmacro %}

{% macro default__weekday_of(date_column) -%}
    mod(extract(dayofweek from {{ date_column }}) + 5, 7) + 1
{%- endmacro %}
{% macro duckdb__weekday_of(date_column) -%} cast(isodow({{ date_column }}) as int64) {%- endmacro %}
