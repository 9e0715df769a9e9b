{# Seconds with nine decimals as hours with nine decimals. #}
{% macro seconds_to_hours(seconds) -%}
    {{ share("cast(" ~ seconds ~ " as numeric(38, 9))", as_weight("1"), as_weight("3600")) }}
{%- endmacro %}
