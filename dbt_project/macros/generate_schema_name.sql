{#
    Schemas carry the layer's plain name: analysts type `core.fct_cost_allocations`. A what-if makes everything in a schema
    of its own, so that it cannot touch the books. That schema has the same name for every what-if, so that the project is
    parsed once for all of them; `apportion simulate` moves the result to where it is looked for.
#}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {%- if env_var("APPORTION_SCENARIO", "") -%}
        {{ layer_schema("scenario") }}
    {%- else -%}
        {{ layer_schema(custom_schema_name | trim) if custom_schema_name else target.schema }}
    {%- endif -%}
{%- endmacro %}
