{# An amount times a rate (both numeric(38, 9)), rounded half away from zero to nine decimals once. #}
{% macro times_rate(amount, rate) -%}
    {{ return(adapter.dispatch("times_rate", "apportion")(amount, rate)) }}
{%- endmacro %}

{# A product of NUMERICs is rounded to their nine decimals, half away. #}
{% macro default__times_rate(amount, rate) -%} cast(({{ amount }}) * ({{ rate }}) as numeric(38, 9)) {%- endmacro %}

{# As in `share`: guessed in floating point, proved by multiplying back. #}
{% macro duckdb__times_rate(amount, rate) -%}
    {%- set guess = "cast(floor(cast(abs(" ~ amount ~ ") as double) * cast(" ~ rate ~ " as double) * 1e9) as hugeint)" -%}
    {%- set product = "cast(round(cast(abs(" ~ amount ~ ") as double) * 1e9) as hugeint) * cast(round(cast(" ~ rate ~ " as double) * 1e9) as int64)" -%}
    case
        when abs({{ amount }}) < 1000000 and ({{ rate }}) >= 0 and ({{ rate }}) <= 1
            then {{ nine_decimals(
                "cast(sign(" ~ amount ~ ") as int64) * ("
                ~ guess ~ " + cast(" ~ product ~ " - " ~ guess ~ " * 1000000000 >= 500000000 as int64))"
            ) }}
        else {{ nine_decimals(
            "cast(sign(" ~ amount ~ ") as hugeint) * (" ~ divided_share("(" ~ amount ~ ")", nano_units(rate), "1000000000", 9) ~ ")"
        ) }}
    end
{%- endmacro %}

{# Money as an integer weight: nano-units. #}
{% macro nano_units(amount) -%}
    {{ return(adapter.dispatch("nano_units", "apportion")(amount)) }}
{%- endmacro %}

{% macro default__nano_units(amount) -%} (cast({{ amount }} as bignumeric) * 1000000000) {%- endmacro %}
{# A cast of wide decimals divides 128 bits, so wholes and decimals are cast apart, in 64. #}
{% macro duckdb__nano_units(amount) -%}
    {%- set narrow = "cast(" ~ amount ~ " as decimal(18, 9))" -%}
    {%- set whole = "cast(" ~ narrow ~ " as int64)" -%}
    case
        when abs({{ amount }}) < 900000000
            then cast(
                {{ whole }} * 1000000000 + cast(cast({{ amount }} - {{ whole }} as decimal(18, 9)) * 1000000000 as int64)
                as hugeint
            )
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
