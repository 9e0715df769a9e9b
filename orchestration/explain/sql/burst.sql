-- Marginal burst pricing: in a cluster's pools of one GPU model, use above entitlement pays for the on-demand and spot
-- capacity first, wherever the jobs ran.

create or replace temp table burst_pools as
select
    pools.usage_date,
    pools.pool_id,
    pools.cluster_id,
    pools.gpu_model,
    pools.purchase_class in ('on_demand', 'spot') as is_burst,
    methods.policy_row
from core.fct_pool_days as pools
inner join methods using (usage_date, pool_id)
where
    methods.component = 'gpu'
    and methods.burst_policy = 'marginal'
    and pools.pool_kind = 'compute'
    and pools.cluster_id is not null
    and pools.gpu_model is not null
    and pools.purchase_class is not null;

-- grain: one row per hour, group of pools and team: what it used, what of that is above its entitlement, and its weight in
-- the cost of burst capacity
create or replace temp table burst_sides as
with entitled as (
    select usage_date, cluster_id, gpu_model, team_id, sum(gpu_units(gpus)) * 3600000 as entitled
    from burst_pools
    inner join seeds.entitlements using (pool_id)
    where not is_burst and is_valid(valid_from, valid_to, usage_date)
    group by all
),

used as (
    select
        usage_date,
        hour_at,
        cluster_id,
        gpu_model,
        team_id,
        sum(quantity) as used,
        sum(case when is_burst then quantity else 0 end) as used_in_burst
    from held_rows
    inner join burst_pools using (usage_date, pool_id)
    where component = 'gpu' and quantity > 0
    group by all
),

compared as (
    select
        used.*,
        coalesce(entitled, 0) as entitled,
        greatest(used - coalesce(entitled, 0), 0) as over_use,
        used - greatest(used - coalesce(entitled, 0), 0) as within_use
    from used
    left join entitled using (usage_date, cluster_id, gpu_model, team_id)
),

summed as (
    select
        compared.*,
        sum(used_in_burst) over hour as burst,
        sum(over_use) over hour as over_total,
        sum(within_use) over hour as within_total
    from compared
    window hour as (partition by usage_date, hour_at, cluster_id, gpu_model)
)

select
    summed.*,
    coalesce(whole_share(over_use, least(burst, over_total), over_total), 0)
    + coalesce(whole_share(within_use, burst - least(burst, over_total), within_total), 0) as burst_weight
from summed;

create or replace temp view burst_pots as
select pot, usage_date, hour_at, pool_id, currency, is_burst, policy_row, cluster_id, gpu_model, used_cost as whole
from hours
inner join burst_pools using (usage_date, pool_id)
where component = 'gpu' and used_cost <> 0;

create or replace temp view burst_claims as
select
    pot,
    null as place,
    teams.payer,
    sides.team_id,
    sides.used,
    sides.entitled,
    case when pots.is_burst then sides.burst_weight else sides.used - sides.burst_weight end as weight
from burst_pots as pots
inner join burst_sides as sides using (usage_date, hour_at, cluster_id, gpu_model)
inner join teams on sides.team_id = teams.team_id;

-- What each team is due, beside what its jobs were charged. A side that weighs nothing moves nothing.
create or replace temp table burst_teams as
with charged as (
    select pot, team_id, sum(amount) as charged, sum(weight) as job_weight
    from direct_parts
    inner join payers using (payer)
    where pot in (select pot from burst_pots)
    group by all
)

select
    parts.*,
    coalesce(charged, 0) as charged,
    coalesce(job_weight, 0) as job_weight,
    amount - coalesce(charged, 0) as moved
from split('burst_pots', 'burst_claims') as parts
left join charged using (pot, team_id)
where amount <> coalesce(charged, 0);

-- A team's part is carried to its jobs there, by what they weigh; a team without a job there keeps it.
create or replace temp table carried_pots as
select
    row_number() over () as pot,
    pot as hour_pot,
    usage_date, hour_at, pool_id, currency, policy_row, team_id, job_weight,
    payer as team_payer,
    moved as whole
from burst_teams;

create or replace temp view carried_claims as
select carried_pots.pot, null as place, jobs.payer, jobs.weight
from carried_pots
inner join direct_parts as jobs on carried_pots.hour_pot = jobs.pot
inner join payers on jobs.payer = payers.payer and carried_pots.team_id = payers.team_id
where carried_pots.job_weight > 0
union all
select pot, null as place, team_payer as payer, 1 as weight
from carried_pots
where job_weight = 0;

create or replace temp table burst_parts as
from split('carried_pots', 'carried_claims');

-- Lender credit: whoever uses more of a base pool than entitled pays a premium to those whose entitled GPUs were free.
create or replace temp table lending_hours as
select hours.*, methods.lender_share, methods.policy_row
from hours
inner join methods using (usage_date, pool_id, component)
inner join core.fct_pool_days as pools using (usage_date, pool_id)
where
    hours.component = 'gpu'
    and hours.cost <> 0
    and methods.lender_share > 0
    and pools.pool_kind = 'compute'
    and pools.purchase_class in ('reserved', 'owned');

-- Capacity in whole units, from the nodes: pool-hours round it to nine decimals of an hour.
create or replace temp table lending_capacity as
with inventory as (
    select
        slot,
        cluster_id,
        node_name,
        sum(
            gpu_units(gpus) * (
                least(epoch_ms(coalesce(valid_to_at, hour_at + interval 1 hour)), epoch_ms(hour_at) + 3600000)
                - greatest(epoch_ms(valid_from_at), epoch_ms(hour_at))
            )
        ) as units
    from (select distinct slot, usage_date, hour_at, pool_id from lending_hours)
    inner join core.fct_node_days using (usage_date, pool_id)
    where valid_from_at < hour_at + interval 1 hour and coalesce(valid_to_at, hour_at + interval 1 hour) > hour_at
    group by all
),

used as (
    select slot, cluster_id, node_name, sum(cast(round(gpu_seconds * 25200000) as hugeint)) as units
    from core.fct_job_usage_hourly
    inner join (select distinct slot, hour_at, pool_id from lending_hours) using (hour_at, pool_id)
    group by all
)

select slot, sum(greatest(coalesce(inventory.units, 0), coalesce(used.units, 0))) as capacity
from inventory
full join used using (slot, cluster_id, node_name)
group by all;

create or replace temp table lender_sides as
select slot, team_id, sum(used) - sum(entitled) as over_use
from (
    select slot, team_id, quantity as used, 0 as entitled
    from held
    inner join payers using (payer)
    where slot in (select slot from lending_hours)
    union all
    select slot, team_id, 0 as used, gpu_units(gpus) * 3600000 as entitled
    from (select distinct slot, usage_date, pool_id from lending_hours)
    inner join seeds.entitlements using (pool_id)
    where is_valid(valid_from, valid_to, usage_date)
)
group by all;

create or replace temp table lender_pots as
with lent as (
    select slot, least(sum(greatest(over_use, 0)), sum(greatest(-over_use, 0))) as lent
    from lender_sides
    group by all
),

exact as (
    select
        lending_hours.*,
        lent.lent,
        case
            when share(1, capacity, 90720000000) = capacity_hours then capacity
            -- A node that jobs used before it was in the inventory: GPUs come in whole percents, so this is near enough.
            else cast(round(capacity_hours * 90720000000 / 252) as hugeint) * 252
        end as capacity
    from lending_hours
    inner join lent using (slot)
    inner join lending_capacity using (slot)
    where lent.lent > 0
)

select
    2 * pot + side.number as pot,
    side.is_borrower,
    slot, usage_date, hour_at, pool_id, currency, cost, lender_share, policy_row, lent, capacity,
    share(cost, lent * nano(lender_share), capacity * 1000000000) as whole
from exact
cross join (values (0, true), (1, false)) as side (number, is_borrower)
where capacity > 0;

create or replace temp view lender_claims as
select pot, null as place, teams.payer, abs(over_use) as weight
from lender_pots
inner join lender_sides as sides on lender_pots.slot = sides.slot and (sides.over_use > 0) = lender_pots.is_borrower
inner join teams using (team_id)
where over_use <> 0;

create or replace temp table lender_parts as
select * replace (case when is_borrower then amount else -amount end as amount)
from split('lender_pots', 'lender_claims');
