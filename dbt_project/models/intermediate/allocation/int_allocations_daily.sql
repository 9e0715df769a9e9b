-- grain: one row per UTC day, pool, daily component, currency, driver and payer: charges that have an owner or follow a driver
-- Every group of cost is either owned, or follows its driver, or is left for the overhead policy (int_overhead_costs).
with daily_costs as (
    select * from {{ ref('int_daily_costs') }}
),

drivers as (
    select * from {{ ref('int_drivers_daily') }}
    where is_measured
),

owned as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        owner_team_id as team_id,
        owner_project_id as project_id,
        cast(null as {{ dbt.type_string() }}) as user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        cast(null as {{ dbt.type_string() }}) as driver,
        {{ as_weight('null') }} as quantity,
        'the bill names the owner' as reason,
        cast(sum(cost) as numeric(38, 9)) as amount
    from daily_costs
    where owner_team_id is not null
    group by usage_date, pool_id, component, currency, owner_team_id, owner_project_id
),

weighted as (
    select
        daily_costs.usage_date,
        daily_costs.pool_id,
        daily_costs.component,
        daily_costs.currency,
        daily_costs.driver,
        daily_costs.cost,
        drivers.team_id,
        drivers.project_id,
        drivers.user_name,
        drivers.job_key,
        drivers.quantity
    from daily_costs
    inner join drivers
        on
            daily_costs.usage_date = drivers.usage_date
            and daily_costs.pool_id = drivers.pool_id
            and daily_costs.driver = drivers.driver
    where daily_costs.owner_team_id is null
),

parts as (
    {{ split(
        'weighted', ['cost'], 'quantity',
        by=['usage_date', 'pool_id', 'component', 'currency', 'driver'],
        order_by=['team_id', 'project_id', 'user_name', 'job_key']
    ) }}
),

final as (
    select * from owned
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        team_id,
        project_id,
        user_name,
        job_key,
        driver,
        quantity,
        'in proportion to use' as reason,
        cost_part as amount
    from parts
)

select * from final
