{# The file that a person edits to change a seed. #}
{% macro seed_file(seed) -%}
    {%- set reference = ["components", "currencies", "gpu_models", "instance_types", "price_presets", "workload_classes"] -%}
    seeds/{{ "reference" if seed in reference else "policy" }}/{{ seed }}.csv
{%- endmacro %}

{# Whether the rows of a seed count on some days only. #}
{% macro is_dated(seed) -%}
    {{ return(seed not in ["components", "gpu_models", "invoice_totals", "price_presets", "workload_classes"]) }}
{%- endmacro %}

{#
    A seed's rows with the file and the name of each, so that a failing policy test says where to look:
    `idle_policies/h100-spot/down@2026-01-01`, as everywhere else. Of dated ones `first_day` and `end_day` are what
    valid_from and valid_to mean where they are empty.
#}
{% macro named_seed_rows(model, key) -%}
    {%- set dated = is_dated(model.identifier) -%}
    select
        seed_rows.*,
        {%- if dated %}
        coalesce(valid_from, date '1970-01-01') as first_day,
        coalesce(valid_to, date '9999-12-31') as end_day,
        {%- endif %}
        '{{ seed_file(model.identifier) }}' as seed_file,
        {{ policy_row(model.identifier, key, is_dated=dated) }} as seed_row
    from {{ model }} as seed_rows
{%- endmacro %}

{% macro as_text(expression) -%} cast({{ expression }} as {{ dbt.type_string() }}) {%- endmacro %}
