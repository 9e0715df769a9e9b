-- Components without capacity, by day: owned by whom the bill names, else by their driver, else overhead.

create or replace temp table daily_costs as
select
    billed.usage_date,
    billed.pool_id,
    billed.component,
    billed.currency,
    rules.driver,
    billed.owner_team_id,
    billed.owner_project_id,
    sum(billed.allocatable_cost) as cost
from core.fct_billed_costs as billed
semi join days using (usage_date)
semi join (from core.dim_components where cost_grain = 'day') as daily using (component)
left join seeds.cost_rules as rules
    on billed.cost_rule = policy_name('cost_rules', cast(rules.rule_order as varchar), rules.valid_from)
group by all;

-- What each payer used of a driver. The books hold it next to the amount, as hours of GiB to nine decimals: it was counted
-- in MiB for milliseconds, and nearly always in whole seconds, which brings the last digits back.
create or replace temp table driver_use as
with counted as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        driver,
        team_id,
        project_id,
        user_name,
        job_key,
        cast(
            round(
                driver_quantity * case driver
                    when 'gpu_seconds' then 25200000
                    when 'cpu_core_seconds' then 1000000
                    when 'memory_gib_seconds' then 1024000
                    when 'gib_hours_stored' then 3686400000
                    when 'seat_hours' then 3600000
                    when 'bytes_out' then 1
                end
            ) as hugeint
        ) as weight
    from core.fct_cost_allocations
    semi join days using (usage_date)
    semi join (from core.dim_components where cost_grain = 'day') as daily using (component)
    where allocation_kind = 'direct' and driver is not null
)

select
    * replace (
        case
            when driver = 'gib_hours_stored' and abs(weight - (weight + 500) // 1000 * 1000) <= 2
                then (weight + 500) // 1000 * 1000
            else weight
        end as weight
    )
from counted;

-- Kilowatt-hours lose digits in the books, and two drivers of one component cannot be told apart in them.
create or replace temp table daily_unknown as
select usage_date, pool_id, component, currency
from daily_costs
where owner_team_id is null
group by all
having count(distinct driver) > 1 or max(driver) = 'kwh'
intersect
select distinct usage_date, pool_id, component, currency from driver_use;

create or replace temp table daily_parts as
with weighted as (
    select
        driver_use.*,
        costs.cost as whole
    from daily_costs as costs
    inner join driver_use using (usage_date, pool_id, component, currency, driver)
    anti join daily_unknown using (usage_date, pool_id, component, currency)
    where costs.owner_team_id is null
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by usage_date, pool_id, component, currency, driver
            order by team_id, project_id, user_name, job_key
            rows unbounded preceding
        ) as running,
        sum(weight) over (partition by usage_date, pool_id, component, currency, driver) as total
    from weighted
)

select
    running.*,
    true as is_recomputed,
    part(whole, weight, running, total) as amount
from running
union all by name
select
    usage_date,
    pool_id,
    component,
    currency,
    owner_team_id as team_id,
    owner_project_id as project_id,
    cost as whole,
    1 as weight,
    1 as running,
    1 as total,
    true as is_recomputed,
    cost as amount
from (
    select usage_date, pool_id, component, currency, owner_team_id, owner_project_id, sum(cost) as cost
    from daily_costs
    anti join daily_unknown using (usage_date, pool_id, component, currency)
    where owner_team_id is not null
    group by all
)
union all by name
select
    usage_date,
    pool_id,
    component,
    currency,
    driver,
    team_id,
    project_id,
    user_name,
    job_key,
    false as is_recomputed,
    amount
from core.fct_cost_allocations
inner join daily_unknown using (usage_date, pool_id, component, currency)
where allocation_kind = 'direct';

-- grain: one row per day, base, pool (none: any), team and project: the weight by which overhead is shared
create or replace temp table overhead_weights as
with direct_costs as (
    select usage_date, currency, team_id, project_id, sum(amount) as amount
    from (
        select usage_date, currency, team_id, project_id, amount from direct_parts
        union all
        select usage_date, currency, team_id, project_id, amount from daily_parts
    )
    where team_id <> 'platform'
    group by all
),

rated as (
    select
        direct_costs.*,
        share(
            amount,
            nano(coalesce(
                rates.rate_to_reporting,
                case when direct_costs.currency = getvariable('reporting_currency') then 1 else 0 end
            )),
            nano(1)
        ) as reported
    from direct_costs
    left join seeds.currencies as rates
        on direct_costs.currency = rates.currency and is_valid(rates.valid_from, rates.valid_to, usage_date)
),

shares as (
    select overhead_shares.*, days.usage_date
    from seeds.overhead_shares
    inner join days on is_valid(valid_from, valid_to, usage_date)
),

fixed_pools as (
    select distinct usage_date, pool_id from methods where overhead_base = 'fixed'
)

select usage_date, 'direct_cost' as base, team_id, project_id, nano(greatest(sum(reported), 0)) as weight
from rated
group by all
union all by name
select usage_date, 'gpu_hours' as base, team_id, project_id, sum(quantity) as weight
from held
where component = 'gpu'
group by all
union all by name
select usage_date, 'headcount' as base, team_id, headcount as weight
from core.fct_team_days
semi join days using (usage_date)
where headcount > 0 and not is_built_in
union all by name
select usage_date, 'fixed' as base, fixed_pools.pool_id, team_id, nano(share) as weight
from fixed_pools
inner join shares using (usage_date)
where shares.pool_id in (fixed_pools.pool_id, '*')
qualify rank() over (partition by usage_date, fixed_pools.pool_id order by shares.pool_id = '*') = 1;

create or replace temp table shared_parts as
with costs as (
    select
        costs.usage_date,
        costs.pool_id,
        costs.component,
        costs.currency,
        costs.driver,
        methods.overhead_base,
        costs.cost as whole
    from daily_costs as costs
    anti join driver_use using (usage_date, pool_id, component, currency, driver)
    inner join methods using (usage_date, pool_id, component)
    where costs.owner_team_id is null
),

weighted as (
    select
        costs.*,
        coalesce(
            weights.team_id, case when costs.overhead_base is null then 'unattributed' else 'platform' end
        ) as team_id,
        weights.project_id,
        coalesce(weights.weight, 1) as weight
    from costs
    left join overhead_weights as weights
        on
            costs.usage_date = weights.usage_date
            and costs.overhead_base = weights.base
            and coalesce(weights.pool_id, costs.pool_id) = costs.pool_id
            and weights.weight > 0
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by usage_date, pool_id, component, currency, driver
            order by team_id, project_id
            rows unbounded preceding
        ) as running,
        sum(weight) over (partition by usage_date, pool_id, component, currency, driver) as total
    from weighted
)

select
    running.*,
    case when overhead_base is null then 'unattributed' else 'shared' end as allocation_kind,
    part(whole, weight, running, total) as amount
from running;
