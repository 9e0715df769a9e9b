-- grain: one row per UTC day, pool, daily component, currency and driver: cost that nobody owns and no driver claims
with daily_costs as (
    select * from {{ ref('int_daily_costs') }}
),

drivers as (
    select distinct
        usage_date,
        pool_id,
        driver
    from {{ ref('int_drivers_daily') }}
    where is_measured
),

allocation_policies as (
    select * from {{ ref('int_allocation_policies') }}
),

final as (
    select
        daily_costs.usage_date,
        daily_costs.pool_id,
        daily_costs.component,
        daily_costs.currency,
        daily_costs.driver,
        allocation_policies.overhead_base,
        cast(sum(daily_costs.cost) as numeric(38, 9)) as cost
    from daily_costs
    left join drivers
        on
            daily_costs.usage_date = drivers.usage_date
            and daily_costs.pool_id = drivers.pool_id
            and daily_costs.driver = drivers.driver
    left join allocation_policies
        on
            daily_costs.usage_date = allocation_policies.usage_date
            and daily_costs.pool_id = allocation_policies.pool_id
            and daily_costs.component = allocation_policies.component
    where daily_costs.owner_team_id is null and drivers.driver is null
    group by 1, 2, 3, 4, 5, 6
)

select * from final
