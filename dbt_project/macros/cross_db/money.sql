{# An amount times a rate (both numeric(38, 9)), rounded half away from zero to nine decimals once. #}
{% macro times_rate(amount, rate) -%}
    {{ return(adapter.dispatch("times_rate", "apportion")(amount, rate)) }}
{%- endmacro %}

{% macro default__times_rate(amount, rate) -%} round({{ amount }} * {{ rate }}, 9) {%- endmacro %}

{% macro duckdb__times_rate(amount, rate) -%}
    {{ share(amount, "cast((" ~ rate ~ ") * 1000000000 as hugeint)", "cast(1000000000 as hugeint)") }}
{%- endmacro %}

{# Money as an integer weight: nano-units. #}
{% macro nano_units(amount) -%}
    {{ return(adapter.dispatch("nano_units", "apportion")(amount)) }}
{%- endmacro %}

{% macro default__nano_units(amount) -%} cast({{ amount }} * 1000000000 as numeric) {%- endmacro %}
{% macro duckdb__nano_units(amount) -%} cast({{ amount }} * 1000000000 as hugeint) {%- endmacro %}
