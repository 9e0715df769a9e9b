{# True for the UTC days of the run's half-open window. Every windowed model filters with this and nothing else. #}
{% macro in_window(column) -%} {{ in_days(column, (var("window_start"), var("window_end"))) }} {%- endmacro %}
