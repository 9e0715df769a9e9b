-- What the facts say of the days: payers, pool-hours, what jobs held in them and what that weighs, and the policy of each
-- pool. Needs the table `days` and the macro `is_mine(team_id, job_key)`, which says for whom the receipt is.

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

-- A slot is a pool's component in an hour; it has a pot for each currency that it is billed in.
create or replace temp table slots as
select row_number() over () as slot, usage_date, hour_at, pool_id, component
from (
    select usage_date, hour_at, pool_id from core.fct_pool_hours semi join days using (usage_date)
    union
    select usage_date, hour_at, pool_id from core.fct_job_usage_hourly semi join days using (usage_date)
)
cross join (select component from core.dim_components where cost_grain = 'hour');

create or replace temp table hours as
select row_number() over () as pot, slots.slot, pool_hours.*
from core.fct_pool_hours as pool_hours
inner join slots using (usage_date, hour_at, pool_id, component);

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

-- grain: one row per slot and job. Quantities are what the facts hold, back in whole units: 1/25,200 of a GPU, thousandths
-- of a core, MiB, each for a millisecond. Of energy the facts tell the weight, and the quantity as far as that tells it.
create or replace temp table held as
with job_hours as (
    select
        usage_date,
        hour_at,
        pool_id,
        team_id,
        project_id,
        user_name,
        job_key,
        sum(cast(round(gpu_seconds * 25200000) as hugeint)) as gpu_held,
        sum(cast(round(cpu_core_seconds * 1000000) as hugeint)) as cpu_held,
        sum(cast(round(memory_gib_seconds * 1024000) as hugeint)) as memory_held,
        cast(sum(gpu_weight) as hugeint) as gpu_weight,
        cast(sum(cpu_weight) as hugeint) as cpu_weight,
        cast(sum(memory_weight) as hugeint) as memory_weight,
        cast(sum(energy_weight) as hugeint) as energy_weight,
        sum(cast(energy_weight as hugeint) // cast(round(class_weight * 1000) as hugeint)) as unclassed_energy
    from core.fct_job_usage_hourly
    semi join days using (usage_date)
    group by all
),

numbered as (
    select payers.payer, payers.team_id, job_hours.* exclude (team_id, project_id, user_name, job_key)
    from job_hours
    inner join payers
        on
            job_hours.job_key = payers.job_key
            and job_hours.team_id = payers.team_id
            and job_hours.project_id is not distinct from payers.project_id
            and job_hours.user_name is not distinct from payers.user_name
),

by_component as (
    select usage_date, hour_at, pool_id, payer, team_id, 'gpu' as component, gpu_held as quantity, gpu_weight as weight
    from numbered
    union all
    select usage_date, hour_at, pool_id, payer, team_id, 'cpu', cpu_held, cpu_weight
    from numbered
    union all
    select usage_date, hour_at, pool_id, payer, team_id, 'memory', memory_held, memory_weight
    from numbered
    union all
    select
        usage_date, hour_at, pool_id, payer, team_id, 'energy',
        case
            when method = 'direct' then energy_weight
            when method = 'complexity' and intensity_metric is null then unclassed_energy
        end,
        energy_weight
    from numbered
    inner join (from methods where component = 'energy') using (usage_date, pool_id)
)

select slots.*, payer, team_id, quantity, weight
from by_component
inner join slots using (usage_date, hour_at, pool_id, component)
where coalesce(quantity, weight) > 0;

create or replace temp table held_by_day as
select usage_date, pool_id, component, payer, sum(weight) as weight
from held
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
