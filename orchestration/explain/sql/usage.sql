-- What the facts say of the days: payers, pool-hours, what jobs held in them and what that weighs, and the policy of each
-- pool. Needs the table `days` and the macro `is_mine(team_id, job_key)`, which says for whom the receipt is.

-- A job's receipt needs the pools that it pays for and those that share burst capacity with them; a team's needs all,
-- because overhead follows what everybody pays anywhere.
create or replace temp table places as
with known as (
    select usage_date, pool_id from core.fct_pool_days semi join days using (usage_date)
    union
    select usage_date, pool_id from core.fct_pool_hours semi join days using (usage_date)
    union
    select usage_date, pool_id from core.fct_billed_costs semi join days using (usage_date)
),

own as (
    select distinct allocations.usage_date, allocations.pool_id, pools.cluster_id, pools.gpu_model
    from core.fct_cost_allocations as allocations
    semi join days using (usage_date)
    left join core.fct_pool_days as pools using (usage_date, pool_id)
    where is_mine(allocations.team_id, allocations.job_key)
)

select known.*
from known
left join core.fct_pool_days as pools using (usage_date, pool_id)
where
    getvariable('subject_column') = 'team_id'
    or (usage_date, pool_id) in (select (usage_date, pool_id) from own)
    or (usage_date, pools.cluster_id, pools.gpu_model) in (
        select (usage_date, cluster_id, gpu_model) from own where gpu_model is not null
    );

-- Payers by number, in the order in which every split takes them.
create or replace temp table payers as
with named as (
    select team_id, project_id, user_name, job_key from core.fct_job_usage_hourly semi join days using (usage_date)
    union
    select team_id, project_id, user_name, job_key from core.fct_job_days semi join days using (usage_date)
    union
    select team_id, project_id, null, null from core.fct_job_days semi join days using (usage_date)
    union
    select team_id, project_id, user_name, null from core.fct_cost_allocations semi join days using (usage_date)
    where job_key is null
    union
    select owner_team_id, owner_project_id, null, null from core.fct_billed_costs semi join days using (usage_date)
    union
    select team_id, project_id, null, null from core.fct_project_days semi join days using (usage_date)
    union
    select team_id, null, null, null from core.fct_team_days semi join days using (usage_date)
)

select
    row_number() over (order by team_id, project_id, user_name, job_key) as payer,
    named.*,
    is_mine(team_id, job_key) as is_mine
from named
where team_id is not null;

create or replace temp view booked as
select payers.payer, allocations.*
from core.fct_cost_allocations as allocations
semi join days using (usage_date)
inner join payers
    on
        allocations.team_id = payers.team_id
        and allocations.project_id is not distinct from payers.project_id
        and allocations.user_name is not distinct from payers.user_name
        and allocations.job_key is not distinct from payers.job_key;

create or replace temp table teams as
select payer, team_id, is_mine from payers where project_id is null and user_name is null and job_key is null;

-- A slot is a pool's component in an hour, by number; it has a pot for each currency that it is billed in.
create or replace temp table pool_hours as
select 4 * row_number() over () as first_slot, usage_date, hour_at, pool_id
from (
    select usage_date, hour_at, pool_id from core.fct_pool_hours semi join places using (usage_date, pool_id)
    union
    select usage_date, hour_at, pool_id from core.fct_job_usage_hourly semi join places using (usage_date, pool_id)
);

create or replace temp table slots as
select first_slot + place as slot, usage_date, hour_at, pool_id, component
from pool_hours
cross join (values (0, 'gpu'), (1, 'cpu'), (2, 'memory'), (3, 'energy')) as components (place, component);

-- Numbers for what is summed over the day's hours, too: they are quicker to group by than names.
create or replace temp table hours as
select
    row_number() over () as pot,
    dense_rank() over (order by usage_date, pool_id, component, currency) as day_pot,
    slots.slot,
    facts.*
from core.fct_pool_hours as facts
inner join slots using (usage_date, hour_at, pool_id, component);

-- grain: one row per day, pool and component: the allocation policy that applies
create or replace temp table methods as
with cells as (
    select usage_date, pool_id, component from hours
    union
    select usage_date, pool_id, component from core.fct_billed_costs semi join places using (usage_date, pool_id)
    union
    -- A pool can have entitlements on a day on which it had neither cost nor capacity.
    select pools.usage_date, pools.pool_id, components.component
    from core.fct_pool_days as pools
    semi join places using (usage_date, pool_id)
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

-- grain: one row per slot, job and node; the parts of a job's nodes add up to those of the job, whatever the split.
-- Quantities are what the facts hold, back in whole units: 1/25,200 of a GPU, thousandths of a core, MiB, each for a
-- millisecond. Of energy the facts tell the weight, and the quantity as far as that tells it.
create or replace temp table held as
with energy_methods as (
    select usage_date, pool_id, method, intensity_metric from methods where component = 'energy'
),

nodes as (
    select
        pool_hours.first_slot,
        payers.payer,
        -- Below 2^53 and next to a whole number, so floating point finds that number.
        cast(round(cast(gpu_seconds as double) * 25200000) as bigint) as gpu_held,
        cast(round(cast(cpu_core_seconds as double) * 1000000) as bigint) as cpu_held,
        cast(round(cast(memory_gib_seconds as double) * 1024000) as bigint) as memory_held,
        case
            when method = 'direct' then cast(energy_weight as hugeint)
            when method = 'complexity' and intensity_metric is null
                then cast(energy_weight as hugeint) // cast(round(class_weight * 1000) as hugeint)
        end as energy_held,
        gpu_weight,
        cpu_weight,
        memory_weight,
        energy_weight
    from core.fct_job_usage_hourly as usage
    inner join pool_hours using (usage_date, hour_at, pool_id)
    left join energy_methods using (usage_date, pool_id)
    inner join payers
        on
            usage.job_key = payers.job_key
            and usage.team_id = payers.team_id
            and usage.project_id is not distinct from payers.project_id
            and usage.user_name is not distinct from payers.user_name
),

by_component as (
    select first_slot as slot, payer, gpu_held as quantity, gpu_weight as weight from nodes
    union all
    select first_slot + 1, payer, cpu_held, cpu_weight from nodes
    union all
    select first_slot + 2, payer, memory_held, memory_weight from nodes
    union all
    select first_slot + 3, payer, energy_held, energy_weight from nodes
)

select slot, payer, quantity, cast(weight as hugeint) as weight
from by_component
where weight > 0 or quantity > 0;

create or replace temp view held_rows as
select held.*, slots.* exclude (slot), payers.team_id, payers.project_id
from held
inner join slots using (slot)
inner join payers using (payer);

create or replace temp table held_by_day as
select usage_date, pool_id, component, payer, sum(weight) as weight
from held
inner join slots using (slot)
group by all;

-- In what weights are counted, for people: a unit, and how much weight makes one of it.
create or replace temp table units as
with pool_days as (
    select
        usage_date,
        pool_id,
        bool_or(component = 'energy' and capacity_hours is not null) as is_metered,
        bool_or(component = 'gpu' and capacity_hours > 0) as has_gpus
    from hours
    group by all
),

-- Power that nobody measured follows GPU time, or core time where there is no GPU.
resources as (
    select
        methods.*,
        case
            when methods.component <> 'energy' then methods.component
            when pool_days.is_metered then 'energy'
            when pool_days.has_gpus then 'gpu'
            else 'cpu'
        end as resource
    from methods
    inner join pool_days using (usage_date, pool_id)
)

select
    usage_date,
    pool_id,
    component,
    case resource when 'gpu' then 'GPU-s' when 'cpu' then 'core-s' when 'memory' then 'GiB-s' else 'kWh' end as held_unit,
    case resource when 'gpu' then 25200000 when 'cpu' then 1000000 when 'memory' then 1024000 else 3600000000000 end
        as held_per_unit,
    case
        when method = 'time' then 's present'
        when method = 'complexity' and intensity_metric is not null then held_unit || ' × class × activity'
        when method = 'complexity' then held_unit || ' × class'
        else held_unit
    end as unit,
    case
        when method = 'time' then 1000::hugeint
        when method = 'complexity' and intensity_metric is not null then held_per_unit::hugeint * 1000000000
        when method = 'complexity' then held_per_unit::hugeint * 1000
        else held_per_unit::hugeint
    end as per_unit
from resources;
