-- grain: one row per UTC day, pool, daily component, currency, driver and owner: cost without capacity
with cells as (
    select * from {{ ref('int_charge_cells') }}
    where hour_ms is null
),

final as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        driver,
        owner_team_id,
        owner_project_id,
        cast(sum(allocatable_cost) as numeric(38, 9)) as cost
    from cells
    group by usage_date, pool_id, component, currency, driver, owner_team_id, owner_project_id
)

select * from final
