-- grain: one row per pool, hour, hourly component, currency and job: its direct cost
-- Each hour's used cost is split over the jobs that held the component's resource in the pool, by what they weigh.
with pool_hour_costs as (
    select * from {{ ref('int_pool_hour_costs') }}
    where used > 0
),

components as (
    select * from {{ ref('stg_reference__components') }}
),

drivers as (
    select * from {{ ref('int_drivers') }}
    where hour_ms is not null
),

weighted as (
    select
        pool_hour_costs.usage_date,
        pool_hour_costs.hour_ms,
        pool_hour_costs.pool_id,
        pool_hour_costs.component,
        pool_hour_costs.currency,
        drivers.team_id,
        drivers.project_id,
        drivers.user_name,
        drivers.job_key,
        drivers.driver,
        drivers.quantity,
        drivers.weight,
        pool_hour_costs.used_cost
    from pool_hour_costs
    inner join components on pool_hour_costs.component = components.component
    inner join drivers
        on
            pool_hour_costs.hour_ms = drivers.hour_ms
            and pool_hour_costs.pool_id = drivers.pool_id
            and components.driver = drivers.driver
),

parts as (
    {{ split(
        'weighted', ['used_cost'], 'weight',
        by=['hour_ms', 'pool_id', 'component', 'currency'],
        order_by=['team_id', 'project_id', 'user_name', 'job_key']
    ) }}
),

final as (
    select
        usage_date,
        hour_ms,
        pool_id,
        component,
        currency,
        team_id,
        project_id,
        user_name,
        job_key,
        driver,
        quantity,
        weight,
        used_cost_part as amount
    from parts
)

select * from final
