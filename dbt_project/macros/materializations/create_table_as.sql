{#
    The days that an incremental model is about to replace are written once, into the model itself: where dbt would copy them
    to a temporary table first, this makes a view of that name. No model reads itself, so what it says is the same after its
    old days are gone.
#}
{% macro duckdb__create_table_as(temporary, relation, compiled_code, language="sql", partitioned_by=none, sorted_by=none) -%}
    {%- if temporary and language == "sql" and model.resource_type == "model" %}
    {%- if config.get("contract").enforced %}{{ get_assert_columns_equivalent(compiled_code) }}{% endif %}
    create or replace temporary view {{ relation.include(database=false, schema=false) }} as (
        {{ compiled_code }}
    )
    {%- else %}
    {{ dbt.duckdb__create_table_as(temporary, relation, compiled_code, language, partitioned_by, sorted_by) }}
    {%- endif %}
{%- endmacro %}
