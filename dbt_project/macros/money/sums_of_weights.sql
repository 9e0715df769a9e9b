{# The sums of `<name>_weight` for each name: `<name>_running_weight`, `<name>_total_weight`. #}
{% macro sums_of_weights(names) -%}
    {%- set sums = [] -%}
    {%- for name in names -%}
        {%- do sums.append(dict(weight=name ~ "_weight", running=name ~ "_running_weight", total=name ~ "_total_weight")) -%}
    {%- endfor -%}
    {{ return(sums) }}
{%- endmacro %}
