{# The factorial of a small whole number, 0 to 12, as an integer weight. #}
{% macro factorial(number) -%}
    {%- set value = namespace(product=1) -%}
    case {{ number }}
        when 0 then {{ as_weight("1") }}
        {%- for factor in range(1, 13) %}
        {%- set value.product = value.product * factor %}
        when {{ factor }} then {{ as_weight(value.product) }}
        {%- endfor %}
    end
{%- endmacro %}
