{#
    For a model that is a table on one engine and a view on another: a table replaces the days of the run's window, a view holds
    all days.
#}
{% macro in_kept_window(column) -%}
    {{ in_window(column) if config.get("materialized") == "incremental" else "true" }}
{%- endmacro %}
