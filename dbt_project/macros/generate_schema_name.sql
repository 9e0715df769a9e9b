{# Schemas carry the layer's plain name: analysts type `core.fct_cost_allocations`. #}
{% macro generate_schema_name(custom_schema_name, node) -%}
    {{ custom_schema_name | trim if custom_schema_name else target.schema }}
{%- endmacro %}
