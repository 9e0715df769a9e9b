-- grain: one row per pool, hour, currency and payer that marginal burst pricing charges more or less than the pool's rate
-- In a cluster's pools of one GPU model, use above entitlement pays for the on-demand and spot capacity first, wherever
-- the jobs physically ran. The rows of a pool-hour sum to zero.
{%- set payer = ['project_id', 'user_name', 'job_key'] %}
{%- set group_hour = ['usage_date', 'hour_ms', 'cluster_id', 'gpu_model'] %}
{%- set pool_hour = ['usage_date', 'hour_ms', 'pool_id', 'currency'] %}

with pools as (
    select
        pool_days.usage_date,
        pool_days.pool_id,
        pool_days.cluster_id,
        pool_days.gpu_model,
        pool_days.purchase_class in ('on_demand', 'spot') as is_burst,
        policies.policy_row
    from {{ ref('int_pool_days') }} as pool_days
    inner join {{ ref('int_allocation_policies') }} as policies
        on
            pool_days.usage_date = policies.usage_date
            and pool_days.pool_id = policies.pool_id
            and policies.component = 'gpu'
            and policies.burst_policy = 'marginal'
    where
        pool_days.pool_kind = 'compute'
        and pool_days.cluster_id is not null
        and pool_days.gpu_model is not null
        and pool_days.purchase_class is not null
),

drivers as (
    select * from {{ ref('int_drivers') }}
    where hour_ms is not null and driver = 'gpu_seconds'
),

entitled as (
    select
        pools.usage_date,
        pools.cluster_id,
        pools.gpu_model,
        entitlements.team_id,
        {{ as_weight('sum(entitlements.gpu_units) * 3600000') }} as entitled
    from pools
    inner join {{ ref('stg_policy__entitlements') }} as entitlements
        on pools.pool_id = entitlements.pool_id and {{ valid_on('entitlements', 'pools.usage_date') }}
    where not pools.is_burst
    group by pools.usage_date, pools.cluster_id, pools.gpu_model, entitlements.team_id
),

team_use as (
    select
        drivers.usage_date,
        drivers.hour_ms,
        pools.cluster_id,
        pools.gpu_model,
        drivers.team_id,
        sum(drivers.quantity) as used,
        sum(case when pools.is_burst then drivers.quantity else 0 end) as used_in_burst
    from drivers
    inner join pools on drivers.usage_date = pools.usage_date and drivers.pool_id = pools.pool_id
    group by drivers.usage_date, drivers.hour_ms, pools.cluster_id, pools.gpu_model, drivers.team_id
),

compared as (
    select
        team_use.*,
        greatest(team_use.used - coalesce(entitled.entitled, 0), 0) as over_use
    from team_use
    left join entitled
        on
            team_use.usage_date = entitled.usage_date
            and team_use.cluster_id = entitled.cluster_id
            and team_use.gpu_model = entitled.gpu_model
            and team_use.team_id = entitled.team_id
),

group_hours as (
    select
        {{ group_hour | join(', ') }},
        sum(over_use) as over_use,
        sum(used - over_use) as within_use,
        sum(used_in_burst) as in_burst,
        least(sum(used_in_burst), sum(over_use)) as over_in_burst
    from compared
    group by {{ group_hour | join(', ') }}
),

-- Over-use fills the burst capacity first; what burst capacity is left is shared by use within entitlement.
weights as (
    select
        compared.*,
        coalesce({{ share('compared.over_use', 'group_hours.over_in_burst', 'group_hours.over_use', 0) }}, 0)
        + coalesce(
            {{ share(
                'compared.used - compared.over_use',
                'group_hours.in_burst - group_hours.over_in_burst',
                'group_hours.within_use',
                0
            ) }},
            0
        ) as burst_weight
    from compared
    inner join group_hours on {{ equal_on('compared', 'group_hours', group_hour) }}
),

job_costs as (
    select
        job_costs.*,
        pools.cluster_id,
        pools.gpu_model,
        pools.is_burst,
        pools.policy_row
    from {{ ref('int_job_hour_costs') }} as job_costs
    inner join pools on job_costs.usage_date = pools.usage_date and job_costs.pool_id = pools.pool_id
    where job_costs.component = 'gpu'
),

charged as (
    select
        {{ pool_hour | join(', ') }},
        team_id,
        cast(sum(amount) as numeric(38, 9)) as amount,
        sum(gpu_weight) as weight
    from job_costs
    group by {{ pool_hour | join(', ') }}, team_id
),

pool_hours as (
    select
        {{ pool_hour | join(', ') }},
        cluster_id,
        gpu_model,
        is_burst,
        policy_row,
        cast(sum(amount) as numeric(38, 9)) as used_cost
    from job_costs
    group by {{ pool_hour | join(', ') }}, cluster_id, gpu_model, is_burst, policy_row
),

due as (
    select
        pool_hours.*,
        weights.team_id,
        case when pool_hours.is_burst then weights.burst_weight else weights.used - weights.burst_weight end as weight
    from pool_hours
    inner join weights on {{ equal_on('pool_hours', 'weights', group_hour) }}
),

due_parts as (
    {{ split('due', ['used_cost'], 'weight', by=pool_hour, order_by=['team_id']) }}
),

-- A side that weighs nothing moves nothing.
moved as (
    select
        {{ qualified('due_parts', pool_hour) }},
        due_parts.policy_row,
        due_parts.team_id,
        due_parts.used_cost_part - coalesce(charged.amount, 0) as team_amount,
        coalesce(charged.weight, 0) > 0 as has_jobs
    from due_parts
    left join charged on {{ equal_on('due_parts', 'charged', pool_hour + ['team_id']) }}
    where due_parts.used_cost_part - coalesce(charged.amount, 0) <> 0
),

carried as (
    select
        moved.*,
        {{ qualified('job_costs', payer) }},
        job_costs.gpu_weight as weight
    from moved
    inner join job_costs on {{ equal_on('moved', 'job_costs', pool_hour + ['team_id']) }}
    where moved.has_jobs
),

carried_parts as (
    {{ split('carried', ['team_amount'], 'weight', by=pool_hour + ['team_id'], order_by=payer) }}
),

final as (
    select
        {{ pool_hour | join(', ') }},
        'gpu' as component,
        policy_row,
        team_id,
        {{ payer | join(', ') }},
        team_amount_part as amount
    from carried_parts
    union all
    select
        {{ pool_hour | join(', ') }},
        'gpu' as component,
        policy_row,
        team_id,
        {%- for column in payer %}
        cast(null as {{ dbt.type_string() }}) as {{ column }},
        {%- endfor %}
        team_amount as amount
    from moved
    where not has_jobs
)

select * from final
where amount <> 0
