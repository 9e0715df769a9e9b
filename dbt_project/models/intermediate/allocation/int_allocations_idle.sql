-- grain: one row per UTC day, pool, hourly component, currency, idle cause and payer
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}

with idle_costs as (
    select * from {{ ref('int_idle_costs') }}
),

drivers as (
    select * from {{ ref('int_drivers') }}
    where hour_ms is not null
),

daily_drivers as (
    select * from {{ ref('int_drivers_daily') }}
),

-- Rules whose weights are the day's split the day's sum once; the others split each hour.
day_sums as (
    select
        usage_date,
        cast(null as int64) as hour_ms,
        pool_id,
        component,
        currency,
        idle_cause,
        driver,
        paid_by,
        reason,
        cast(sum(idle_cost) as numeric(38, 9)) as idle_cost
    from idle_costs
    where paid_by in ('platform', 'users of the day')
    group by usage_date, pool_id, component, currency, idle_cause, driver, paid_by, reason
),

hours_by_the_day as (
    select
        usage_date,
        hour_ms,
        pool_id,
        component,
        currency,
        idle_cause,
        driver,
        paid_by,
        reason,
        idle_cost
    from idle_costs
    where paid_by = 'users of the day, hour by hour'
),

weighted as (
    select
        costs.*,
        {{ qualified('daily_drivers', payer) }},
        daily_drivers.quantity
    from (
        select * from day_sums
        where paid_by = 'users of the day'
        union all
        select * from hours_by_the_day
    ) as costs
    inner join daily_drivers
        on
            costs.usage_date = daily_drivers.usage_date
            and costs.pool_id = daily_drivers.pool_id
            and costs.driver = daily_drivers.driver
    union all
    select
        idle_costs.usage_date,
        idle_costs.hour_ms,
        idle_costs.pool_id,
        idle_costs.component,
        idle_costs.currency,
        idle_costs.idle_cause,
        idle_costs.driver,
        idle_costs.paid_by,
        idle_costs.reason,
        idle_costs.idle_cost,
        {{ qualified('drivers', payer) }},
        drivers.quantity
    from idle_costs
    inner join drivers
        on
            idle_costs.hour_ms = drivers.hour_ms
            and idle_costs.pool_id = drivers.pool_id
            and idle_costs.driver = drivers.driver
    where idle_costs.paid_by = 'users of the hour'
),

parts as (
    {{ split(
        'weighted', ['idle_cost'], 'quantity',
        by=['usage_date', 'hour_ms', 'pool_id', 'component', 'currency', 'idle_cause'],
        order_by=payer
    ) }}
),

final as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        team_id,
        project_id,
        user_name,
        job_key,
        reason,
        cast(sum(idle_cost_part) as numeric(38, 9)) as amount
    from parts
    group by usage_date, pool_id, component, currency, idle_cause, team_id, project_id, user_name, job_key, reason
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        'platform' as team_id,
        cast(null as {{ dbt.type_string() }}) as project_id,
        cast(null as {{ dbt.type_string() }}) as user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        reason,
        idle_cost as amount
    from day_sums
    where paid_by = 'platform'
)

select * from final
