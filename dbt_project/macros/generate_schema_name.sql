{#
    Schemas carry the layer's plain name: analysts type `core.fct_cost_allocations`. A what-if keeps everything that it
    makes in a schema of its own, so that it cannot touch the books.
#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {%- set scenario = env_var("APPORTION_SCENARIO", "") -%}
    {%- if scenario -%}
        scenario_{{ scenario | replace("-", "_") }}
    {%- else -%}
        {{ custom_schema_name | trim if custom_schema_name else target.schema }}
    {%- endif -%}
{%- endmacro %}
