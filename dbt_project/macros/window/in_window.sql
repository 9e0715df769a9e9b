{# True for the UTC days of the run's half-open window. Every windowed model filters with this and nothing else. #}
{% macro in_window(column) -%}
    ({{ column }} >= date '{{ var("window_start") }}' and {{ column }} < date '{{ var("window_end") }}')
{%- endmacro %}
