{# An amount times a rate (both numeric(38, 9)), rounded half away from zero to nine decimals once. #}
{% macro times_rate(amount, rate) -%}
    {{ return(adapter.dispatch("times_rate", "apportion")(amount, rate)) }}
{%- endmacro %}

{# A product of NUMERICs is rounded to their nine decimals, half away. #}
{% macro default__times_rate(amount, rate) -%} cast(({{ amount }}) * ({{ rate }}) as numeric(38, 9)) {%- endmacro %}

{% macro duckdb__times_rate(amount, rate) -%}
    {{ share(amount, nano_units(rate), "cast(1000000000 as hugeint)") }}
{%- endmacro %}

{# Money as an integer weight: nano-units. #}
{% macro nano_units(amount) -%}
    {{ return(adapter.dispatch("nano_units", "apportion")(amount)) }}
{%- endmacro %}

{% macro default__nano_units(amount) -%} (cast({{ amount }} as bignumeric) * 1000000000) {%- endmacro %}
{# Below a million, floating point holds them all; a cast of wide decimals divides. #}
{% macro duckdb__nano_units(amount) -%}
    case
        when abs({{ amount }}) < 1000000 then cast(round(cast({{ amount }} as double) * 1e9) as hugeint)
        else cast(({{ amount }}) * 1000000000 as hugeint)
    end
{%- endmacro %}

{# A numeric(38, 9) as text without trailing zeros, which is how GoogleSQL writes it: 0.2, 15, 0. #}
{% macro number_as_text(number) -%}
    {{ return(adapter.dispatch("number_as_text", "apportion")(number)) }}
{%- endmacro %}

{% macro default__number_as_text(number) -%} cast({{ number }} as string) {%- endmacro %}
{% macro duckdb__number_as_text(number) -%}
    rtrim(rtrim(cast(cast({{ number }} as decimal(38, 9)) as varchar), '0'), '.')
{%- endmacro %}
