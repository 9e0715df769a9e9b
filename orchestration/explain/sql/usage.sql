-- What the facts say of the days: pool-hours, what jobs held in them and what that weighs, and the policy of each pool.
-- Needs the table `days`.

create or replace temp table hours as
select pool_hours.*
from core.fct_pool_hours as pool_hours
semi join days using (usage_date);

-- grain: one row per day, pool and component: the allocation policy that applies
create or replace temp table methods as
with cells as (
    select usage_date, pool_id, component from hours
    union
    select usage_date, pool_id, component from core.fct_billed_costs semi join days using (usage_date)
    union
    -- A pool can have entitlements on a day on which it had neither cost nor capacity.
    select pools.usage_date, pools.pool_id, components.component
    from core.fct_pool_days as pools
    semi join days using (usage_date)
    cross join core.dim_components as components
    where pools.pool_kind = 'compute' and components.cost_grain = 'hour'
)

select
    cells.usage_date,
    cells.pool_id,
    cells.component,
    coalesce(policies.method, 'direct') as method,
    policies.overhead_base,
    coalesce(policies.burst_policy, 'blended') as burst_policy,
    coalesce(policies.lender_share, 0) as lender_share,
    policies.intensity_metric,
    policies.idle_ceiling,
    policy_name('allocation_policies', policies.pool_id || '/' || policies.component, policies.valid_from) as policy_row
from cells
left join seeds.allocation_policies as policies
    on
        policies.pool_id in (cells.pool_id, '*')
        and policies.component in (cells.component, '*')
        and is_valid(policies.valid_from, policies.valid_to, cells.usage_date)
qualify
    row_number() over (
        partition by cells.usage_date, cells.pool_id, cells.component
        order by policies.pool_id = '*', policies.component = '*'
    ) = 1;

-- grain: one row per hour, pool, component and job. Quantities are what the facts hold, back in whole units: 1/25,200 of
-- a GPU, thousandths of a core, MiB, each for a millisecond. Energy is known only as far as its weight tells it.
create or replace temp table held as
with nodes as (
    select
        usage_date,
        hour_at,
        pool_id,
        team_id,
        project_id,
        user_name,
        job_key,
        cast(round(class_weight * 1000) as hugeint) as class_thousandths,
        unnest(
            [
                {'component': 'gpu', 'quantity': cast(round(gpu_seconds * 25200000) as hugeint), 'weight': gpu_weight},
                {'component': 'cpu', 'quantity': cast(round(cpu_core_seconds * 1000000) as hugeint), 'weight': cpu_weight},
                {'component': 'memory', 'quantity': cast(round(memory_gib_seconds * 1024000) as hugeint), 'weight': memory_weight},
                {'component': 'energy', 'quantity': cast(null as hugeint), 'weight': energy_weight}
            ],
            recursive := true
        )
    from core.fct_job_usage_hourly
    semi join days using (usage_date)
),

known as (
    select
        nodes.* exclude (quantity, weight),
        cast(nodes.weight as hugeint) as weight,
        case
            when nodes.component <> 'energy' then nodes.quantity
            when methods.method = 'direct' then cast(nodes.weight as hugeint)
            when methods.method = 'complexity' and methods.intensity_metric is null
                then cast(nodes.weight as hugeint) // nodes.class_thousandths
        end as quantity
    from nodes
    inner join methods using (usage_date, pool_id, component)
)

select
    usage_date,
    hour_at,
    pool_id,
    component,
    team_id,
    project_id,
    user_name,
    job_key,
    sum(quantity) as quantity,
    sum(weight) as weight
from known
group by all
having coalesce(sum(quantity), sum(weight)) > 0;
