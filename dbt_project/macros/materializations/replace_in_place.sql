{#
    Views and tables on DuckDB, made by one statement. dbt's own way (make beside, rename, rename, drop) serves databases that
    cannot replace a table inside a transaction; over a hundred models it costs as much as their work on a small day.
#}
{% materialization view, adapter="duckdb" %}
    {{ return(replaced_in_place("view")) }}
{% endmaterialization %}

{% materialization table, adapter="duckdb" %}
    {{ return(replaced_in_place("table")) }}
{% endmaterialization %}

{% macro replaced_in_place(type) %}
    {%- set old = load_cached_relation(this) -%}
    {%- set new = this.incorporate(type=type) -%}
    {%- set is_contract = config.get("contract").enforced -%}
    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}
    {%- if old is not none and old.type != type -%}
        {%- if "windowed" in model.tags -%}
            {#- A table that earlier versions filled day by day: its days are in no other table yet. -#}
            {%- do exceptions.raise_compiler_error("the days of this incremental model are out of sync: " ~ this ~ " is a table of its own") -%}
        {%- endif -%}
        {%- do adapter.drop_relation(old) -%}
    {%- endif -%}
    {%- call statement("main") -%}
        {%- if is_contract %}{{ get_assert_columns_equivalent(compiled_code) }}{% endif %}
        {%- if is_contract and type == "table" %}
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
