-- grain: one row per bill line, UTC day that it covers, pool and component
{%- set amounts = ['list_cost', 'billed_cost', 'effective_cost'] %}
{%- set of_the_line = [
    'currency', 'commitment_fee_key', 'source_name', 'provider', 'invoice_id', 'billing_period_start_at', 'charge_category',
    'charge_description', 'service_name', 'resource_id', 'tags', 'owner_team_id', 'owner_project_id', 'cost_rule', 'is_final',
    'line_billed_cost', 'spread_start_ms', 'spread_end_ms'
] %}

with charge_days as (
    select * from {{ ref('int_charge_days') }}
),

summed_hours as (
    select
        usage_date,
        charge_key,
        pool_id,
        component,
        {%- for amount in amounts %}
        cast(sum({{ amount }}) as numeric(38, 9)) as {{ amount }}{{ "," if not loop.last }}
        {%- endfor %}
    from {{ ref('int_charge_hours') }}
    group by usage_date, charge_key, pool_id, component
),

costs as (
    select
        usage_date,
        charge_key,
        day_pool_id as pool_id,
        day_component as component,
        {{ (amounts + of_the_line) | join(', ') }}
    from charge_days
    where day_component is not null
    union all
    select
        summed_hours.*,
        {{ qualified('charge_days', of_the_line) }}
    from summed_hours
    inner join charge_days
        on summed_hours.usage_date = charge_days.usage_date and summed_hours.charge_key = charge_days.charge_key
    where charge_days.day_component is null
),

final as (
    select
        costs.*,
        {{ var('cost_basis') }}_cost as allocatable_cost,
        case when is_final then 'final' else 'provisional' end as cost_status
    from costs
)

select * from final
