-- Marginal burst pricing: in a cluster's pools of one GPU model, use above entitlement pays for the on-demand and spot
-- capacity first, wherever the jobs ran.

create or replace temp table burst_teams as
with pools as (
    select
        pool_days.*,
        pool_days.purchase_class in ('on_demand', 'spot') as is_burst,
        methods.policy_row
    from core.fct_pool_days as pool_days
    inner join methods using (usage_date, pool_id)
    where
        methods.component = 'gpu'
        and methods.burst_policy = 'marginal'
        and pool_days.pool_kind = 'compute'
        and pool_days.cluster_id is not null
        and pool_days.gpu_model is not null
        and pool_days.purchase_class is not null
),

entitled as (
    select usage_date, cluster_id, gpu_model, team_id, sum(cast(round(gpus * 25200) as hugeint)) * 3600000 as entitled
    from pools
    inner join seeds.entitlements using (pool_id)
    where not is_burst and is_valid(valid_from, valid_to, usage_date)
    group by all
),

teams as (
    select
        usage_date,
        hour_at,
        cluster_id,
        gpu_model,
        team_id,
        sum(quantity) as used,
        sum(case when is_burst then quantity else 0 end) as used_in_burst
    from held
    inner join pools using (usage_date, pool_id)
    where held.component = 'gpu'
    group by all
),

compared as (
    select
        teams.*,
        greatest(used - coalesce(entitled, 0), 0) as over_use,
        used - over_use as within_use,
        sum(used_in_burst) over hour as burst,
        sum(over_use) over hour as over_total,
        sum(within_use) over hour as within_total
    from teams
    left join entitled using (usage_date, cluster_id, gpu_model, team_id)
    window hour as (partition by usage_date, hour_at, cluster_id, gpu_model)
),

sides as (
    select
        compared.*,
        coalesce(whole_share(over_use, least(burst, over_total), over_total), 0)
        + coalesce(whole_share(within_use, burst - least(burst, over_total), within_total), 0) as burst_weight
    from compared
),

charged as (
    select usage_date, hour_at, pool_id, currency, team_id, sum(amount) as charged, sum(weight) as job_weight
    from direct_parts
    where component = 'gpu'
    group by all
),

used_costs as (
    select usage_date, hour_at, pool_id, currency, sum(charged) as whole
    from charged
    group by all
),

due as (
    select
        used_costs.*,
        pools.policy_row,
        pools.is_burst,
        sides.team_id,
        sides.used,
        sides.over_use,
        greatest(case when pools.is_burst then sides.burst_weight else sides.used - sides.burst_weight end, 0) as weight
    from used_costs
    inner join pools using (usage_date, pool_id)
    inner join sides using (usage_date, hour_at, cluster_id, gpu_model)
),

running as (
    select
        due.*,
        sum(weight) over (
            partition by hour_at, pool_id, currency order by team_id rows unbounded preceding
        ) as running,
        sum(weight) over (partition by hour_at, pool_id, currency) as total
    from due
)

select
    running.*,
    coalesce(charged.charged, 0) as charged,
    coalesce(charged.job_weight, 0) as job_weight,
    part(whole, weight, running, total) as due,
    part(whole, weight, running, total) - coalesce(charged.charged, 0) as moved
from running
left join charged using (usage_date, hour_at, pool_id, currency, team_id)
where total > 0;

-- A team's part is carried to its jobs there, by what they weigh; a team without a job there keeps it.
create or replace temp table burst_parts as
with weighted as (
    select
        moved.usage_date,
        moved.hour_at,
        moved.pool_id,
        moved.currency,
        moved.policy_row,
        moved.moved as whole,
        moved.team_id,
        jobs.project_id,
        jobs.user_name,
        jobs.job_key,
        coalesce(jobs.weight, 1) as weight
    from burst_teams as moved
    left join direct_parts as jobs
        on
            jobs.component = 'gpu'
            and moved.job_weight > 0
            and moved.hour_at = jobs.hour_at
            and moved.pool_id = jobs.pool_id
            and moved.currency = jobs.currency
            and moved.team_id = jobs.team_id
    where moved.moved <> 0
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by hour_at, pool_id, currency, team_id order by project_id, user_name, job_key rows unbounded preceding
        ) as running,
        sum(weight) over (partition by hour_at, pool_id, currency, team_id) as total
    from weighted
)

select
    running.*,
    part(whole, weight, running, total) as amount
from running;

-- Lender credit: whoever uses more of a base pool than entitled pays a premium to those whose entitled GPUs were free.
create or replace temp table lender_parts as
with lending_hours as (
    select hours.*, methods.lender_share, methods.policy_row
    from hours
    inner join methods using (usage_date, pool_id, component)
    inner join core.fct_pool_days as pools using (usage_date, pool_id)
    where
        hours.component = 'gpu'
        and hours.cost <> 0
        and methods.lender_share > 0
        and pools.pool_kind = 'compute'
        and pools.purchase_class in ('reserved', 'owned')
),

-- Capacity in whole units, from the nodes: pool-hours round it to nine decimals of an hour.
inventory as (
    select
        usage_date,
        hour_at,
        pool_id,
        cluster_id,
        node_name,
        sum(
            cast(round(gpus * 25200) as hugeint) * (
                least(epoch_ms(coalesce(valid_to_at, hour_at + interval 1 hour)), epoch_ms(hour_at) + 3600000)
                - greatest(epoch_ms(valid_from_at), epoch_ms(hour_at))
            )
        ) as units
    from (select distinct usage_date, hour_at, pool_id from lending_hours)
    inner join core.fct_node_days using (usage_date, pool_id)
    where valid_from_at < hour_at + interval 1 hour and coalesce(valid_to_at, hour_at + interval 1 hour) > hour_at
    group by all
),

held_by_node as (
    select usage_date, hour_at, pool_id, cluster_id, node_name, sum(cast(round(gpu_seconds * 25200000) as hugeint)) as units
    from core.fct_job_usage_hourly
    semi join lending_hours using (usage_date, hour_at, pool_id)
    group by all
),

capacities as (
    select usage_date, hour_at, pool_id, sum(greatest(coalesce(inventory.units, 0), coalesce(held_by_node.units, 0))) as capacity
    from inventory
    full join held_by_node using (usage_date, hour_at, pool_id, cluster_id, node_name)
    group by all
),

pool_hours as (
    select
        lending_hours.usage_date,
        lending_hours.hour_at,
        lending_hours.pool_id,
        lending_hours.currency,
        lending_hours.cost,
        lending_hours.lender_share,
        lending_hours.policy_row,
        case
            when share(1, capacities.capacity, 90720000000) = lending_hours.capacity_hours then capacities.capacity
            -- A node that jobs used before it was in the inventory: GPUs come in whole percents, so this is near enough.
            else cast(round(lending_hours.capacity_hours * 90720000000 / 252) as hugeint) * 252
        end as capacity
    from lending_hours
    inner join capacities using (usage_date, hour_at, pool_id)
),

sides as (
    select usage_date, hour_at, pool_id, team_id, sum(used) - sum(entitled) as over_use
    from (
        select usage_date, hour_at, pool_id, team_id, quantity as used, 0 as entitled
        from held
        where component = 'gpu'
        union all
        select usage_date, hour_at, pool_id, team_id, 0 as used, cast(round(gpus * 25200) as hugeint) * 3600000 as entitled
        from (select distinct usage_date, hour_at, pool_id from pool_hours)
        inner join seeds.entitlements using (pool_id)
        where is_valid(valid_from, valid_to, usage_date)
    )
    semi join pool_hours using (usage_date, hour_at, pool_id)
    group by all
),

lent as (
    select usage_date, hour_at, pool_id, least(sum(greatest(over_use, 0)), sum(greatest(-over_use, 0))) as quantity
    from sides
    group by all
),

weighted as (
    select
        pool_hours.*,
        lent.quantity as lent,
        share(cost, lent.quantity * nano(lender_share), capacity * 1000000000) as whole,
        sides.team_id,
        sides.over_use > 0 as is_borrower,
        abs(sides.over_use) as weight
    from pool_hours
    inner join lent using (usage_date, hour_at, pool_id)
    inner join sides using (usage_date, hour_at, pool_id)
    where lent.quantity > 0 and pool_hours.capacity > 0 and sides.over_use <> 0
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by hour_at, pool_id, currency, is_borrower order by team_id rows unbounded preceding
        ) as running,
        sum(weight) over (partition by hour_at, pool_id, currency, is_borrower) as total
    from weighted
)

select
    running.*,
    case when is_borrower then 1 else -1 end * part(whole, weight, running, total) as amount
from running;
