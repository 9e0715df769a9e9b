{# True for the UTC days from the first one to the day before the second. #}
{% macro in_days(column, days) -%}
    ({{ column }} >= date '{{ days[0] }}' and {{ column }} < date '{{ days[1] }}')
{%- endmacro %}
