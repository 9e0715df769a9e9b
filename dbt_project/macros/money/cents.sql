{#
    Cents of an amount among its neighbours: the difference of two rounded running sums, so that the cents of a group add up to
    its rounded total and no line is a plug for the others. `running` is the sum up to and with the amount, in a fixed order.
#}
{% macro cents_of(amount, running) -%}
    cast(round({{ running }}, 2) - round({{ running }} - {{ amount }}, 2) as numeric(38, 9))
{%- endmacro %}
