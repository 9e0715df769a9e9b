{#
    Views, tables and incremental tables on DuckDB, made by one statement. dbt's own way (make beside, rename, rename, drop; or a
    temporary table first, which is asked for its columns) serves databases that cannot replace a table inside a transaction;
    over a hundred models it costs as much as their work on a small day.
#}
{% materialization view, adapter="duckdb" %}
    {{ return(replaced_in_place("view")) }}
{% endmaterialization %}

{% materialization table, adapter="duckdb" %}
    {{ return(replaced_in_place("table")) }}
{% endmaterialization %}

{% materialization incremental, adapter="duckdb" %}
    {{ return(replaced_in_place("table", keep=true)) }}
{% endmaterialization %}

{# With `keep`, a table that is there stays, and its incremental strategy says which of its rows are replaced. #}
{% macro replaced_in_place(type, keep=false) %}
    {%- set old = load_cached_relation(this) -%}
    {%- set new = this.incorporate(type=type) -%}
    {%- set is_contract = config.get("contract").enforced -%}
    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {%- if old is not none and old.type != type -%}
        {%- if "windowed" in model.tags and old.type == "table" -%}
            {#- A table that earlier versions filled day by day: its days are in no other table yet. -#}
            {%- do exceptions.raise_compiler_error("the days of this incremental model are out of sync: " ~ this ~ " is a table of its own") -%}
        {%- endif -%}
        {%- do adapter.drop_relation(old) -%}
        {%- set old = none -%}
    {%- endif -%}
    {%- call statement("main") -%}
        {%- if is_contract %}{{ get_assert_columns_equivalent(compiled_code) }}{% endif %}
        {%- if keep and old is not none %}
        {{ replaced_rows(new) }}
        {%- elif is_contract and type == "table" %}
        create or replace table {{ new }} {{ get_table_columns_and_constraints() }};
        insert into {{ new }} {{ get_column_names() }} ({{ get_select_subquery(compiled_code) }})
        {%- else %}
        create or replace {{ type }} {{ new }} as (
            {{ compiled_code }}
        )
        {%- endif -%}
    {%- endcall -%}
    {%- do persist_docs(new, model) -%}
    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {%- do adapter.commit() -%}
    {{ run_hooks(post_hooks, inside_transaction=False) }}
    {{ return({"relations": [new]}) }}
{% endmacro %}

{#
    What a model says takes the place of its old rows, straight from its query: no model reads itself, so that says the same
    after they are gone. Its columns are those of the contract, which has just been compared with the query; that the table has
    them too is all that is left to see. A query is planned whenever it is asked for its columns, and the large ones take DuckDB
    longer to plan than to run on a small day.
#}
{% macro replaced_rows(table) %}
    {%- set said = get_column_schema_from_query(get_empty_schema_sql(model.columns)) -%}
    {%- set held = adapter.get_column_schema_from_query("select * from " ~ table) -%}
    {%- set missing, surplus, changed = diff_columns(said, held), diff_columns(held, said), diff_column_data_types(said, held) -%}
    {%- if missing or surplus or changed -%}
        {%- do exceptions.raise_compiler_error(
            "The source and target schemas on this incremental model are out of sync! Not in " ~ table ~ ": " ~ missing
            ~ "; not in the model: " ~ surplus ~ "; of another type: " ~ changed
        ) -%}
    {%- endif -%}
    {%- set strategy = adapter.get_incremental_strategy_macro(context, config.get("incremental_strategy")) -%}
    {{ strategy({"target_relation": table, "temp_relation": "(\n" ~ compiled_code ~ "\n) as said", "dest_columns": said}) }}
{% endmacro %}
