{#
    Which partitions a run replaces on BigQuery: all of its window, listed, so that a day that became empty becomes empty
    and no other partition is read. dbt takes the list from a model's config, which is fixed when the project is parsed; taken
    here, when the statement is made, one parsed project serves every window.
#}
{% macro bq_insert_overwrite_sql(
    tmp_relation, target_relation, sql, unique_key, partition_by, partitions, dest_columns, tmp_relation_exists, copy_partitions
) %}
    {{ bq_static_insert_overwrite_sql(
        tmp_relation, target_relation, sql, partition_by, window_partitions(partition_by.granularity), dest_columns,
        tmp_relation_exists, copy_partitions
    ) }}
{% endmacro %}

{# The days of the window, or the first days of the months that it touches, as date literals. #}
{% macro window_partitions(granularity) -%}
    {%- set first = modules.datetime.date.fromisoformat(var("window_start")) -%}
    {%- set end = modules.datetime.date.fromisoformat(var("window_end")) -%}
    {%- set found = [] -%}
    {%- for number in range((end - first).days) -%}
        {%- set day = first + modules.datetime.timedelta(days=number) -%}
        {%- set partition = "date '" ~ (day.replace(day=1) if granularity == "month" else day) ~ "'" -%}
        {%- if partition not in found -%} {%- do found.append(partition) -%} {%- endif -%}
    {%- endfor -%}
    {{ return(found or ["date '1970-01-01'"]) }}
{%- endmacro %}
