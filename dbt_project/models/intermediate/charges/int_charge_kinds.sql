-- grain: one row per bill line and UTC day that it may cost something on
-- The kind of a line is the classes of its values (int_charge_values; 0: nothing that a cost rule reads).
{%- set fields = ['provider', 'charge_category', 'service_name', 'sku_id', 'resource_id', 'tags'] %}

with charges as (
    select * from {{ ref('stg_billing__charges') }}
),

field_values as (
    select * from {{ ref('int_charge_values') }}
),

final as (
    select
        charges.*,
        {% for field in fields %}
        coalesce({{ field }}_values.value_class, 0) as {{ field }}_class,
        {% endfor %}
        {{ date_of('charges.billing_period_start_ms') }} as billing_period_date
    from charges
    {% for field in fields %}
    left join field_values as {{ field }}_values
        on {{ field }}_values.field_name = '{{ field }}' and charges.{{ field }} = {{ field }}_values.field_value
    {% endfor %}
)

select * from final
