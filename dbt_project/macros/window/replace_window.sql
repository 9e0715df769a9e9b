{#
    The incremental strategy of every fact on DuckDB: delete the window's days, then insert what the model says
    about them. Unlike delete+insert on a key, a day that became empty really becomes empty.
#}
{% macro get_incremental_replace_window_sql(arg_dict) %}
    {%- set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) -%}
    delete from {{ arg_dict["target_relation"] }} where {{ in_window("usage_date") }};
    insert into {{ arg_dict["target_relation"] }} ({{ columns }})
    select {{ columns }}
    from {{ arg_dict["temp_relation"] }}
    where {{ in_window("usage_date") }}
{% endmacro %}
