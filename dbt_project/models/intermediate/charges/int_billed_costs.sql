-- grain: one row per bill line, UTC day that it covers, pool and component
-- A line of a daily component is booked as a whole, any other as the sums of its hours.
{%- set amounts = ['list_cost', 'billed_cost', 'effective_cost'] %}

with charge_days as (
    select * from {{ ref('int_charge_days') }}
),

hourly_costs as (
    select
        usage_date,
        charge_key,
        pool_id,
        component,
        {%- for amount in amounts %}
        cast(sum({{ amount }}) as numeric(38, 9)) as {{ amount }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from {{ ref('int_charge_hours') }}
    group by usage_date, charge_key, pool_id, component
),

costs as (
    select
        charge_days.usage_date,
        charge_days.charge_key,
        case when charge_days.is_hourly then hourly_costs.pool_id else charge_days.rule_pool_id end as pool_id,
        case when charge_days.is_hourly then hourly_costs.component else charge_days.rule_component end as component,
        charge_days.currency,
        {%- for amount in amounts %}
        case when charge_days.is_hourly then hourly_costs.{{ amount }} else charge_days.{{ amount }} end as {{ amount }},
        {%- endfor %}
        charge_days.commitment_fee_key,
        charge_days.source_name,
        charge_days.provider,
        charge_days.invoice_id,
        charge_days.billing_period_date,
        charge_days.charge_category,
        charge_days.charge_description,
        charge_days.service_name,
        charge_days.resource_id,
        charge_days.tags,
        charge_days.owner_team_id,
        charge_days.owner_project_id,
        charge_days.cost_rule,
        case when charge_days.is_final then 'final' else 'provisional' end as cost_status,
        charge_days.line_billed_cost,
        charge_days.spread_start_ms,
        charge_days.spread_end_ms
    from charge_days
    left join hourly_costs
        on
            charge_days.is_hourly
            and charge_days.usage_date = hourly_costs.usage_date
            and charge_days.charge_key = hourly_costs.charge_key
),

final as (
    select
        costs.*,
        {{ var('cost_basis') }}_cost as allocatable_cost
    from costs
)

select * from final
