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
    sum(billed.allocatable_cost) as whole
from core.fct_billed_costs as billed
semi join places using (usage_date, pool_id)
semi join (from core.dim_components where cost_grain = 'day') as daily using (component)
left join seeds.cost_rules as rules
    on billed.cost_rule = policy_name('cost_rules', cast(rules.rule_order as varchar), rules.valid_from)
group by all;

-- What each payer used of a driver. The books hold it beside the amount: GiB-hours to nine decimals, which was counted in
-- MiB for milliseconds and nearly always in whole seconds, which brings the last digits back.
create or replace temp table driver_use as
with counted as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        driver,
        payer,
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
    from booked
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
select usage_date, pool_id, component, currency from driver_use;

create or replace temp table daily_pots as
select row_number() over () as pot, daily_costs.*
from daily_costs
anti join daily_unknown using (usage_date, pool_id, component, currency);

create or replace temp view daily_claims as
select pot, null as place, driver_use.payer, driver_use.weight
from daily_pots
inner join driver_use using (usage_date, pool_id, component, currency, driver)
where owner_team_id is null
union all
select pot, null as place, payers.payer, 1 as weight
from daily_pots
inner join payers
    on
        daily_pots.owner_team_id = payers.team_id
        and daily_pots.owner_project_id is not distinct from payers.project_id
        and payers.user_name is null
        and payers.job_key is null;

create or replace temp table daily_parts as
select *, true as is_recomputed
from split('daily_pots', 'daily_claims')
union all by name
select usage_date, pool_id, component, currency, driver, payer, false as is_recomputed, amount
from booked
inner join daily_unknown using (usage_date, pool_id, component, currency)
where allocation_kind = 'direct';

-- An amount in the reporting currency, at the rate of the day; the reporting currency needs no rate.
create or replace temp macro rate_of(currency, rate) as
    nano(coalesce(rate, case when currency = getvariable('reporting_currency') then 1 else 0 end));

-- grain: one row per day, base, pool (none: any) and payer (team and project): the weight by which overhead is shared
create or replace temp table overhead_weights as
with direct_costs as (
    select usage_date, currency, team_id, project_id, sum(amount) as amount
    from (
        select usage_date, currency, payer, amount from direct_days
        union all
        select usage_date, currency, payer, amount from daily_parts
    )
    inner join payers using (payer)
    where team_id <> 'platform'
    group by all
),

rated as (
    select direct_costs.*, share(amount, rate_of(direct_costs.currency, rates.rate_to_reporting), nano(1)) as reported
    from direct_costs
    left join seeds.currencies as rates
        on direct_costs.currency = rates.currency and is_valid(rates.valid_from, rates.valid_to, usage_date)
),

fixed as (
    select
        pools.usage_date,
        pools.pool_id,
        shares.team_id,
        nano(shares.share) as weight,
        policy_name('overhead_shares', shares.pool_id || '/' || shares.team_id, shares.valid_from) as weight_row
    from (select distinct usage_date, pool_id from methods where overhead_base = 'fixed') as pools
    inner join seeds.overhead_shares as shares
        on shares.pool_id in (pools.pool_id, '*') and is_valid(shares.valid_from, shares.valid_to, pools.usage_date)
    -- Shares of the pool itself count before those of any pool.
    qualify rank() over (partition by pools.usage_date, pools.pool_id order by shares.pool_id = '*') = 1
),

by_project as (
    select usage_date, 'direct_cost' as base, team_id, project_id, nano(greatest(sum(reported), 0)) as weight
    from rated
    group by all
    union all by name
    select usage_date, 'gpu_hours' as base, team_id, project_id, sum(quantity) as weight
    from held_rows
    where component = 'gpu'
    group by all
    union all by name
    select usage_date, 'headcount' as base, team_id, headcount as weight
    from core.fct_team_days
    semi join days using (usage_date)
    where headcount > 0 and not is_built_in
    union all by name
    select usage_date, 'fixed' as base, pool_id, team_id, weight, weight_row
    from fixed
)

select by_project.*, payers.payer
from by_project
inner join payers
    on
        by_project.team_id = payers.team_id
        and by_project.project_id is not distinct from payers.project_id
        and payers.user_name is null
        and payers.job_key is null
where weight > 0;

create or replace temp table shared_pots as
select row_number() over () as pot, costs.*, methods.overhead_base
from daily_costs as costs
anti join driver_use using (usage_date, pool_id, component, currency, driver)
inner join methods using (usage_date, pool_id, component)
where owner_team_id is null;

create or replace temp view shared_claims as
with claims as (
    select shared_pots.pot, weights.payer, weights.weight, weights.weight_row
    from shared_pots
    inner join overhead_weights as weights
        on
            shared_pots.usage_date = weights.usage_date
            and shared_pots.overhead_base = weights.base
            and coalesce(weights.pool_id, shared_pots.pool_id) = shared_pots.pool_id
)

select *, null as place
from claims
union all by name
select pot, teams.payer, 1 as weight
from shared_pots
inner join teams on teams.team_id = case when overhead_base is null then 'unattributed' else 'platform' end
where pot not in (select pot from claims);

create or replace temp table shared_parts as
select *, case when overhead_base is null then 'unattributed' else 'shared' end as allocation_kind
from split('shared_pots', 'shared_claims');
