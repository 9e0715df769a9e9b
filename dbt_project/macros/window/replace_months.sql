{#
    The incremental strategy of monthly reports on DuckDB: delete the months that the window touches, then insert what the
    model says about them. They read the facts of the whole month, so the last run of a month's days says it all.
#}
{% macro get_incremental_replace_months_sql(arg_dict) %}
    {%- set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) %}
    delete from {{ arg_dict["target_relation"] }} where {{ in_months("month_date") }};
    insert into {{ arg_dict["target_relation"] }} ({{ columns }})
    select {{ columns }}
    from {{ arg_dict["temp_relation"] }}
{% endmacro %}
