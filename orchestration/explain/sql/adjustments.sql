-- Adjustments: a percentage of the scope's cost, a rate per GPU-hour instead of its cost, or an amount spread over its days.
-- They read the books as they stand before any of them.

create or replace temp table books_before as
select
    usage_date, pool_id, component, currency, payer,
    'direct' as allocation_kind,
    cast(null as varchar) as idle_cause,
    cast(null as varchar) as policy_row,
    true as is_recomputed,
    amount
from direct_days
union all by name
select usage_date, pool_id, component, currency, payer, 'direct' as allocation_kind, is_recomputed, amount
from daily_parts
union all by name
select *, 'idle' as allocation_kind
from idle_rows
union all by name
select usage_date, pool_id, component, currency, payer, allocation_kind, true as is_recomputed, amount
from shared_parts
union all by name
select
    usage_date, pool_id, component, currency, payer,
    'unattributed' as allocation_kind,
    true as is_recomputed,
    cost - used_cost - down_cost - reserved_cost - stranded_cost - unscheduled_cost as amount
from hours
cross join (from teams where team_id = 'unattributed') as nobody
where cost <> used_cost + down_cost + reserved_cost + stranded_cost + unscheduled_cost
union all by name
select usage_date, pool_id, 'gpu' as component, currency, payer, 'burst' as allocation_kind, policy_row, true as is_recomputed, amount
from burst_parts
union all by name
select usage_date, pool_id, 'gpu' as component, currency, payer, 'burst' as allocation_kind, policy_row, true as is_recomputed, amount
from lender_parts
union all by name
select *, 'outcome_credit' as allocation_kind
from outcome_rows
union all by name
select
    usage_date, pool_id, component, currency, platform.payer, policy_row, is_recomputed,
    'outcome_credit' as allocation_kind,
    -amount as amount
from outcome_rows
cross join (from teams where team_id = 'platform') as platform;

create or replace temp table adjustments as
select
    row_number() over () as adjustment,
    usage_date,
    adjustments.* exclude (reason, approved_by),
    policy_name('adjustments', adjustment_id, valid_from) as policy_row
from days
inner join seeds.adjustments as adjustments on is_valid(valid_from, valid_to, usage_date);

-- grain: one row per adjustment that names a team, and team that it covers: that team and those below it
create or replace temp table covered_teams as
with recursive below as (
    select usage_date, team_id as top_team_id, team_id, 1 as level
    from core.fct_team_days
    semi join days using (usage_date)
    union all
    select below.usage_date, below.top_team_id, teams.team_id, below.level + 1
    from below
    inner join core.fct_team_days as teams
        on below.usage_date = teams.usage_date and below.team_id = teams.parent_team_id
    where below.level < 20
)

select adjustment, below.team_id
from adjustments
inner join below on adjustments.usage_date = below.usage_date and adjustments.team_id = below.top_team_id;

-- grain: one row per adjustment and row of the books in its scope (or, with no cost, GPU time held in its scope)
create or replace temp table in_scope as
with candidates as (
    select usage_date, pool_id, component, currency, payer, allocation_kind, amount as cost, 0::hugeint as gpu_held
    from books_before
    union all
    select usage_date, pool_id, component, null as currency, payer, 'held' as allocation_kind, 0 as cost, sum(quantity) as gpu_held
    from held_rows
    where component = 'gpu'
    group by all
)

select
    adjustment,
    adjustments.adjustment_kind,
    usage_date,
    rows.pool_id,
    rows.component,
    coalesce(rows.currency, adjustments.currency) as currency,
    rows.payer,
    payers.team_id,
    payers.project_id,
    rows.cost,
    rows.gpu_held
from adjustments
inner join candidates as rows using (usage_date)
inner join payers using (payer)
left join core.fct_job_days as jobs using (usage_date, job_key)
where
    case adjustments.adjustment_kind
        when 'percent' then rows.allocation_kind <> 'held'
        when 'rate' then rows.component = 'gpu'
        -- An amount looks at the books only to find the payers of a class.
        else rows.allocation_kind = 'direct' and adjustments.team_id is null and adjustments.project_id is null
    end
    and (
        adjustments.adjustment_kind = 'amount'
        or (
            coalesce(adjustments.pool_id, rows.pool_id) = rows.pool_id
            and coalesce(adjustments.component, rows.component) = rows.component
            and coalesce(adjustments.currency, rows.currency) = coalesce(rows.currency, adjustments.currency)
        )
    )
    and (adjustments.project_id is null or adjustments.project_id = payers.project_id)
    and (adjustments.workload_class is null or adjustments.workload_class = jobs.workload_class)
    and (
        adjustments.team_id is null or (adjustment, payers.team_id) in (select (adjustment, team_id) from covered_teams)
    );

create or replace temp table scope_payers as
select adjustment, pool_id, component, currency, payer, sum(cost) as cost, sum(gpu_held) as gpu_held
from in_scope
where adjustment_kind <> 'amount'
group by all;

-- An amount belongs to the project or team that it names; one for a class, to those whose jobs are of the class. On a day
-- without such jobs it moves nothing.
create or replace temp table amount_payers as
with class_costs as (
    select adjustment, usage_date, currency, team_id, project_id, sum(cost) as amount
    from in_scope
    where adjustment_kind = 'amount' and team_id <> 'platform'
    group by all
),

class_payers as (
    select
        adjustment,
        class_costs.team_id,
        class_costs.project_id,
        nano(greatest(sum(share(amount, rate_of(class_costs.currency, rate_to_reporting), nano(1))), 0)) as weight
    from class_costs
    left join seeds.currencies as rates
        on class_costs.currency = rates.currency and is_valid(rates.valid_from, rates.valid_to, usage_date)
    group by all
),

given as (
    select
        adjustments.adjustment,
        adjustments.currency,
        coalesce(projects.team_id, adjustments.team_id, class_payers.team_id) as team_id,
        coalesce(adjustments.project_id, class_payers.project_id) as project_id,
        coalesce(class_payers.weight, 1) as weight
    from adjustments
    left join core.fct_project_days as projects
        on adjustments.usage_date = projects.usage_date and adjustments.project_id = projects.project_id
    left join class_payers on adjustments.adjustment = class_payers.adjustment and class_payers.weight > 0
    where adjustments.adjustment_kind = 'amount'
)

select given.adjustment, 'none' as pool_id, 'other' as component, given.currency, payers.payer, given.weight
from given
inner join payers
    on
        given.team_id = payers.team_id
        and given.project_id is not distinct from payers.project_id
        and payers.user_name is null
        and payers.job_key is null;

-- The whole of a percentage, of a rate or of an amount's day, rounded once.
create or replace temp table adjustment_pots as
with places as (
    select
        adjustment, pool_id, component, currency,
        sum(cost) as scope_cost,
        sum(gpu_held) as scope_held
    from scope_payers
    group by all
    union all by name
    select distinct adjustment, pool_id, component, currency
    from amount_payers
)

select
    row_number() over () as pot,
    places.*,
    adjustments.usage_date,
    adjustments.adjustment_kind,
    adjustments.value,
    adjustments.funded_by,
    adjustments.policy_row,
    case adjustments.adjustment_kind
        when 'percent' then share(case when value < 0 then -1 else 1 end * scope_cost, nano(abs(value)), nano(100))
        when 'rate' then share(value, scope_held, 90720000000)
        else
            share(value, (usage_date - valid_from + 1)::hugeint, (valid_to - valid_from)::hugeint)
            - share(value, (usage_date - valid_from)::hugeint, (valid_to - valid_from)::hugeint)
    end as whole
from places
inner join adjustments using (adjustment);

create or replace temp view adjustment_claims as
select
    pot,
    null as place,
    payer,
    case adjustment_kind when 'percent' then nano(cost) * sign(scope_cost)::hugeint else gpu_held end as weight,
    case adjustment_kind when 'rate' then cost else 0 end as less
from scope_payers
inner join adjustment_pots using (adjustment, pool_id, component, currency)
union all
select pot, null as place, payer, weight, 0 as less
from amount_payers
inner join adjustment_pots using (adjustment, pool_id, component, currency);

create or replace temp table adjustment_parts as
select * replace (coalesce(amount, 0) - less as amount)
from split('adjustment_pots', 'adjustment_claims');

-- The other side: the platform, a team, or all teams outside of the scope by their direct cost in the same place.
create or replace temp table funding_pots as
select pot, adjustment, usage_date, pool_id, component, currency, policy_row, funded_by, sum(amount) as whole
from adjustment_parts
group by all;

create or replace temp view funding_claims as
with direct_costs as (
    select usage_date, pool_id, component, currency, team_id, nano(sum(amount)) as weight
    from books_before
    inner join payers using (payer)
    where allocation_kind = 'direct' and team_id <> 'platform'
    group by all
    union all by name
    select usage_date, 'none' as pool_id, 'other' as component, currency, team_id, sum(weight) as weight
    from overhead_weights
    cross join (select distinct currency from funding_pots where pool_id = 'none')
    where base = 'direct_cost'
    group by all
),

others as (
    select pot, direct_costs.team_id, weight
    from funding_pots
    inner join direct_costs using (usage_date, pool_id, component, currency)
    where
        funded_by = 'all'
        and weight > 0
        and (pot, direct_costs.team_id) not in (
            select (pot, payers.team_id) from adjustment_parts inner join payers using (payer)
        )
        and (adjustment, direct_costs.team_id) not in (select (adjustment, team_id) from covered_teams)
),

funders as (
    select * from others
    union all
    select pot, case when funded_by = 'all' then 'platform' else funded_by end as team_id, 1 as weight
    from funding_pots
    where pot not in (select pot from others)
)

select pot, null as place, payer, weight
from funders
inner join teams using (team_id);

create or replace temp table funding_parts as
select * replace (-amount as amount)
from split('funding_pots', 'funding_claims');
