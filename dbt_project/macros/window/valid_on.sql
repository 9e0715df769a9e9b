{# Policy rows are looked up by usage day: valid_from is the first day, valid_to the first day no longer valid. #}
{% macro valid_on(relation, usage_date) -%}
    ({{ usage_date }} >= {{ relation }}.valid_from and {{ usage_date }} < {{ relation }}.valid_to)
{%- endmacro %}
