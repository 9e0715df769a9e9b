{#
    The incremental strategy of every fact on DuckDB: delete the window's days, then insert what the model says
    about them. Unlike delete+insert on a key, a day that became empty really becomes empty. The tables before a fact
    are scratch of the last window; a fact built alone for other days would read them and be emptied, so it is refused.
#}
{% macro get_incremental_replace_window_sql(arg_dict) %}
    {%- set columns = get_quoted_csv(arg_dict["dest_columns"] | map(attribute="name")) -%}
    {%- set days = api.Relation.create(database=target.database, schema="intermediate", identifier="int_days") %}
    select
        case
            when count(*) <> date '{{ var("window_end") }}' - date '{{ var("window_start") }}'
                or min(usage_date) <> date '{{ var("window_start") }}'
                then error('the steps before {{ arg_dict["target_relation"].identifier }} were built for other days; build them too: --select +{{ arg_dict["target_relation"].identifier }}')
        end
    from {{ days }};
    delete from {{ arg_dict["target_relation"] }} where {{ in_window("usage_date") }};
    insert into {{ arg_dict["target_relation"] }} ({{ columns }})
    select {{ columns }}
    from {{ arg_dict["temp_relation"] }}
    where {{ in_window("usage_date") }}
{% endmacro %}
