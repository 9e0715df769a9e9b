{# The file that a person edits to change a seed. #}
{% macro seed_file(seed) -%}
    {%- set reference = ["components", "currencies", "gpu_models", "instance_types"] -%}
    seeds/{{ "reference" if seed in reference else "policy" }}/{{ seed }}.csv
{%- endmacro %}

{#
    A seed's rows with the file and the name of each, so that a failing policy test says where to look:
    `idle_policies/h100-spot/down@2026-01-01`, as everywhere else.
#}
{% macro named_seed_rows(model, key) -%}
    select
        seed_rows.*,
        '{{ seed_file(model.identifier) }}' as seed_file,
        {{ policy_row(model.identifier, key, is_dated=model.identifier not in ["components", "gpu_models"]) }} as seed_row
    from {{ model }} as seed_rows
{%- endmacro %}

{% macro as_text(expression) -%} cast({{ expression }} as {{ dbt.type_string() }}) {%- endmacro %}
