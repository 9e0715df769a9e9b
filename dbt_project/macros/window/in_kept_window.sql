{#
    For fct_cost_allocations, which dbt_project.yml makes a table where a view would be billed as a scan of each branch, and a view
    on DuckDB: a table replaces the days of the run's window, a view holds all days.
#}
{% macro in_kept_window(column) -%}
    {{ return(adapter.dispatch("in_kept_window", "apportion")(column)) }}
{%- endmacro %}

{% macro default__in_kept_window(column) -%} {{ return(in_window(column)) }} {%- endmacro %}
{% macro duckdb__in_kept_window(column) -%} true {%- endmacro %}
