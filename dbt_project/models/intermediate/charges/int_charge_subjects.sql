-- grain: one row per kind of bill line: a combination of classes (int_charge_kinds), and an example of it
{%- set fields = ['provider', 'charge_category', 'service_name', 'sku_id', 'resource_id', 'tags'] %}
{%- set classes = ['provider_class', 'charge_category_class', 'service_name_class', 'sku_id_class', 'resource_id_class', 'tags_class'] %}

with kinds as (
    select distinct {{ classes | join(', ') }}
    from {{ ref('int_charge_kinds') }}
),

examples as (
    select distinct
        value_class,
        example_value
    from {{ ref('int_charge_values') }}
),

final as (
    select
        kinds.*,
        {% for field in fields %}
        {{ field }}_examples.example_value as {{ field }},
        {% endfor %}
        row_number() over (order by {{ classes | join(', ') }}) as subject_key
    from kinds
    {% for field in fields %}
    left join examples as {{ field }}_examples on kinds.{{ field }}_class = {{ field }}_examples.value_class
    {% endfor %}
)

select * from final
