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

{# The first day of the month after the month that begins on `date_column`. #}
{% macro next_month(date_column) -%}
    {{ return(adapter.dispatch("next_month", "apportion")(date_column)) }}
{%- endmacro %}

{% macro default__next_month(date_column) -%} date_add({{ date_column }}, interval 1 month) {%- endmacro %}
{% macro duckdb__next_month(date_column) -%} cast({{ date_column }} + interval 1 month as date) {%- endmacro %}
