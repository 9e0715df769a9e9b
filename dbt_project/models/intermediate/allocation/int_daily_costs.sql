-- grain: one row per UTC day, pool, daily component, currency, driver and owner: cost without capacity
with cells as (
    select * from {{ ref('int_charge_cells') }}
    where hour_ms is null
),

charge_days as (
    select * from {{ ref('int_charge_days') }}
),

payers as (
    select * from {{ ref('int_payers') }}
),

final as (
    select
        cells.usage_date,
        cells.pool_id,
        cells.component,
        cells.currency,
        charge_days.driver,
        payers.team_id as owner_team_id,
        payers.project_id as owner_project_id,
        cast(sum(cells.allocatable_cost) as numeric(38, 9)) as cost
    from cells
    inner join charge_days on cells.usage_date = charge_days.usage_date and cells.charge_key = charge_days.charge_key
    left join payers
        on
            charge_days.has_owner
            and charge_days.tags is not null
            and cells.usage_date = payers.usage_date
            and {{ payer_subject_key(tags='charge_days.tags') }} = payers.subject_key
    group by 1, 2, 3, 4, 5, 6, 7
)

select * from final
