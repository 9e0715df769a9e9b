{# How receipts and reports name a policy row: `idle_policies/h100-spot/down@2026-01-01`. #}
{% macro policy_row(seed, key_columns, is_dated=true) -%}
    {%- set parts = ["'" ~ seed ~ "'"] -%}
    {%- for column in key_columns -%}
        {%- do parts.append("'/'") -%}
        {%- do parts.append("coalesce(cast(" ~ column ~ " as " ~ dbt.type_string() ~ "), '')") -%}
    {%- endfor -%}
    {%- if is_dated -%}
        {%- do parts.append("'@'") -%}
        {%- do parts.append("coalesce(cast(valid_from as " ~ dbt.type_string() ~ "), '')") -%}
    {%- endif -%}
    {{ dbt.concat(parts) }}
{%- endmacro %}
