{# Seconds with nine decimals as hours with nine decimals. #}
{% macro seconds_to_hours(seconds) -%}
    {{ return(adapter.dispatch("seconds_to_hours", "apportion")("cast(" ~ seconds ~ " as numeric(38, 9))")) }}
{%- endmacro %}

{% macro default__seconds_to_hours(seconds) -%}
    {{ share(seconds, as_weight("1"), as_weight("3600")) }}
{%- endmacro %}

{% macro duckdb__seconds_to_hours(seconds) -%}
    case
        when {{ seconds }} >= 0 and {{ seconds }} < 900000000
            then {{ nine_decimals("(cast(" ~ nano_units(seconds) ~ " as int64) + 1800) // 3600") }}
        else {{ nine_decimals(
            "cast(sign(" ~ seconds ~ ") as hugeint) * (" ~ divided_share("(" ~ seconds ~ ")", "1", "3600", 9) ~ ")"
        ) }}
    end
{%- endmacro %}
