{# The join condition over a list of columns that are never absent. #}
{% macro equal_on(left, right, columns) -%}
    {%- for column in columns -%}
        {{ left }}.{{ column }} = {{ right }}.{{ column }}{{ " and " if not loop.last }}
    {%- endfor -%}
{%- endmacro %}
