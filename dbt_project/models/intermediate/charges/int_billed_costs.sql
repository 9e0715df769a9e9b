-- grain: one row per bill line, UTC day that it covers, pool and component
with cells as (
    select * from {{ ref('int_charge_cells') }}
),

charge_days as (
    select * from {{ ref('int_charge_days') }}
),

payers as (
    select * from {{ ref('int_payers') }}
),

summed as (
    select
        usage_date,
        charge_key,
        pool_id,
        component,
        {%- for amount in ['list_cost', 'billed_cost', 'effective_cost', 'allocatable_cost'] %}
        cast(sum({{ amount }}) as numeric(38, 9)) as {{ amount }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from cells
    group by usage_date, charge_key, pool_id, component
),

final as (
    select
        summed.*,
        charge_days.currency,
        charge_days.commitment_fee_key,
        charge_days.source_name,
        charge_days.provider,
        charge_days.invoice_id,
        charge_days.billing_period_start_at,
        charge_days.charge_category,
        charge_days.charge_description,
        charge_days.service_name,
        charge_days.resource_id,
        charge_days.tags,
        payers.team_id as owner_team_id,
        payers.project_id as owner_project_id,
        charge_days.cost_rule,
        charge_days.driver,
        case when charge_days.is_final then 'final' else 'provisional' end as cost_status,
        charge_days.line_billed_cost,
        charge_days.spread_start_ms,
        charge_days.spread_end_ms
    from summed
    inner join charge_days on summed.usage_date = charge_days.usage_date and summed.charge_key = charge_days.charge_key
    left join payers
        on
            charge_days.has_owner
            and charge_days.tags is not null
            and summed.usage_date = payers.usage_date
            and {{ payer_subject_key(tags='charge_days.tags') }} = payers.subject_key
)

select * from final
