-- Adjustments: a percentage of the scope's cost, a rate per GPU-hour instead of its cost, or an amount spread over its days.
-- They read the books as they stand before any of them.

create or replace temp table books_before as
select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'direct' as allocation_kind, amount
from direct_parts
union all by name
select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'direct' as allocation_kind, amount
from daily_parts
union all by name
select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'idle' as allocation_kind, amount
from idle_rows
union all by name
select usage_date, pool_id, component, currency, team_id, project_id, allocation_kind, amount
from shared_parts
union all by name
select
    usage_date,
    pool_id,
    component,
    currency,
    'unattributed' as team_id,
    'unattributed' as allocation_kind,
    cost - used_cost - down_cost - reserved_cost - stranded_cost - unscheduled_cost as amount
from hours
union all by name
select usage_date, pool_id, 'gpu' as component, currency, team_id, project_id, user_name, job_key, 'burst' as allocation_kind, amount
from burst_parts
union all by name
select usage_date, pool_id, 'gpu' as component, currency, team_id, 'burst' as allocation_kind, amount
from lender_parts
union all by name
select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'outcome_credit' as allocation_kind, amount
from outcome_rows
union all by name
select usage_date, pool_id, component, currency, 'platform' as team_id, 'outcome_credit' as allocation_kind, -amount as amount
from outcome_rows;

-- grain: one row per day and adjustment valid on it, and per team that its scope covers (none: any team)
create or replace temp table adjustment_scopes as
with recursive covered as (
    select usage_date, team_id as ancestor_team_id, team_id, 1 as level
    from core.fct_team_days
    semi join days using (usage_date)
    union all
    select covered.usage_date, covered.ancestor_team_id, teams.team_id, covered.level + 1
    from covered
    inner join core.fct_team_days as teams
        on covered.usage_date = teams.usage_date and covered.team_id = teams.parent_team_id
    where covered.level < 20
)

select
    days.usage_date,
    adjustments.* exclude (reason, approved_by),
    policy_name('adjustments', adjustments.adjustment_id, adjustments.valid_from) as policy_row,
    covered.team_id as covered_team_id
from days
inner join seeds.adjustments as adjustments on is_valid(adjustments.valid_from, adjustments.valid_to, days.usage_date)
left join covered on days.usage_date = covered.usage_date and adjustments.team_id = covered.ancestor_team_id;

create or replace temp macro covers(scope_team, team, scope_project, project, scope_class, class, scope_pool, pool) as
    (scope_team is null or scope_team = team)
    and (scope_project is null or scope_project = project)
    and (scope_class is null or scope_class = class)
    and (scope_pool is null or scope_pool = pool);

-- What the scope's payers get, before anybody funds it.
create or replace temp table adjustment_parts as
with classes as (
    select usage_date, job_key, workload_class from core.fct_job_days semi join days using (usage_date)
),

books as (
    select books_before.*, classes.workload_class
    from books_before
    left join classes using (usage_date, job_key)
),

gpu_use as (
    select held.*, classes.workload_class
    from held
    left join classes using (usage_date, job_key)
    where held.component = 'gpu'
),

-- Unnamed teams are covered by an empty team_id, named ones by the teams below them.
in_scope as (
    select
        scopes.usage_date,
        scopes.adjustment_id,
        books.pool_id,
        books.component,
        books.currency,
        books.team_id,
        books.project_id,
        books.user_name,
        books.job_key,
        books.amount as cost,
        0::hugeint as gpu_held
    from adjustment_scopes as scopes
    inner join books
        on
            scopes.usage_date = books.usage_date
            and covers(
                case when scopes.team_id is not null then coalesce(scopes.covered_team_id, '') end, books.team_id,
                scopes.project_id, books.project_id, scopes.workload_class, books.workload_class, scopes.pool_id, books.pool_id
            )
            and coalesce(scopes.currency, books.currency) = books.currency
            and coalesce(scopes.component, books.component) = books.component
    where
        scopes.adjustment_kind = 'percent' or (scopes.adjustment_kind = 'rate' and books.component = 'gpu')
    union all by name
    select
        scopes.usage_date,
        scopes.adjustment_id,
        gpu_use.pool_id,
        'gpu' as component,
        scopes.currency,
        gpu_use.team_id,
        gpu_use.project_id,
        gpu_use.user_name,
        gpu_use.job_key,
        0 as cost,
        gpu_use.quantity as gpu_held
    from adjustment_scopes as scopes
    inner join gpu_use
        on
            scopes.usage_date = gpu_use.usage_date
            and covers(
                case when scopes.team_id is not null then coalesce(scopes.covered_team_id, '') end, gpu_use.team_id,
                scopes.project_id, gpu_use.project_id, scopes.workload_class, gpu_use.workload_class,
                scopes.pool_id, gpu_use.pool_id
            )
    where scopes.adjustment_kind = 'rate'
),

payers as (
    select
        usage_date, adjustment_id, pool_id, component, currency, team_id, project_id, user_name, job_key,
        sum(cost) as cost,
        sum(gpu_held) as gpu_held
    from in_scope
    group by all
),

adjustments as (
    select distinct * exclude (covered_team_id) from adjustment_scopes
),

scoped as (
    select
        payers.*,
        adjustments.adjustment_kind,
        adjustments.value,
        sum(payers.cost) over scope as scope_cost,
        sum(payers.gpu_held) over scope as scope_held
    from payers
    inner join adjustments using (usage_date, adjustment_id)
    window scope as (partition by usage_date, adjustment_id, payers.pool_id, payers.component, payers.currency)
),

-- An amount belongs to the project or team that it names; one for a class, to those whose jobs are of the class.
class_payers as (
    select
        usage_date,
        adjustment_id,
        team_id,
        project_id,
        nano(greatest(sum(reported), 0)) as weight
    from (
        select
            costs.usage_date,
            costs.adjustment_id,
            costs.team_id,
            costs.project_id,
            share(
                costs.amount,
                nano(coalesce(
                    rates.rate_to_reporting, case when costs.currency = getvariable('reporting_currency') then 1 else 0 end
                )),
                nano(1)
            ) as reported
        from (
            select
                books.usage_date,
                adjustments.adjustment_id,
                books.team_id,
                books.project_id,
                books.currency,
                sum(books.amount) as amount
            from books
            inner join adjustments
                on books.usage_date = adjustments.usage_date and books.workload_class = adjustments.workload_class
            where
                adjustments.adjustment_kind = 'amount'
                and adjustments.team_id is null
                and adjustments.project_id is null
                and books.allocation_kind = 'direct'
                and books.team_id <> 'platform'
            group by all
        ) as costs
        left join seeds.currencies as rates
            on costs.currency = rates.currency and is_valid(rates.valid_from, rates.valid_to, costs.usage_date)
    )
    group by all
    having weight > 0
),

amounts as (
    select
        adjustments.usage_date,
        adjustments.adjustment_id,
        adjustments.adjustment_kind,
        adjustments.value,
        'none' as pool_id,
        'other' as component,
        adjustments.currency,
        coalesce(projects.team_id, adjustments.team_id, class_payers.team_id, 'platform') as team_id,
        coalesce(adjustments.project_id, class_payers.project_id) as project_id,
        share(
            adjustments.value,
            cast(adjustments.usage_date - adjustments.valid_from + 1 as hugeint),
            cast(adjustments.valid_to - adjustments.valid_from as hugeint)
        ) - share(
            adjustments.value,
            cast(adjustments.usage_date - adjustments.valid_from as hugeint),
            cast(adjustments.valid_to - adjustments.valid_from as hugeint)
        ) as whole,
        coalesce(class_payers.weight, 1) as weight
    from adjustments
    left join core.fct_project_days as projects
        on adjustments.usage_date = projects.usage_date and adjustments.project_id = projects.project_id
    left join class_payers
        on adjustments.usage_date = class_payers.usage_date and adjustments.adjustment_id = class_payers.adjustment_id
    where adjustments.adjustment_kind = 'amount'
),

weighted as (
    select
        scoped.*,
        case adjustment_kind
            when 'percent' then share(
                case when value < 0 then -1 else 1 end * scope_cost, nano(abs(value)), nano(100)
            )
            else share(value, scope_held, 90720000000::hugeint)
        end as whole,
        greatest(
            case adjustment_kind
                when 'percent' then nano(cost) * cast(sign(scope_cost) as hugeint)
                else gpu_held
            end,
            0
        ) as weight
    from scoped
    union all by name
    select * from amounts
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by usage_date, adjustment_id, pool_id, component, currency
            order by team_id, project_id, user_name, job_key
            rows unbounded preceding
        ) as running,
        sum(weight) over (partition by usage_date, adjustment_id, pool_id, component, currency) as total
    from weighted
)

select
    running.*,
    adjustments.policy_row,
    adjustments.funded_by,
    coalesce(part(whole, weight, running, total), 0)
    - case when running.adjustment_kind = 'rate' then running.cost else 0 end as amount
from running
inner join adjustments using (usage_date, adjustment_id);

-- The other side: the platform, a team, or all teams outside of the scope by their direct cost in the same place.
create or replace temp table funding_parts as
with totals as (
    select usage_date, adjustment_id, pool_id, component, currency, policy_row, funded_by, sum(amount) as whole
    from adjustment_parts
    group by all
),

scope_teams as (
    select distinct usage_date, adjustment_id, pool_id, component, currency, team_id from adjustment_parts
),

direct_costs as (
    select usage_date, pool_id, component, currency, team_id, nano(sum(amount)) as weight
    from books_before
    where allocation_kind = 'direct' and team_id <> 'platform'
    group by all
    union all by name
    select weights.usage_date, 'none' as pool_id, 'other' as component, currency, weights.team_id, sum(weights.weight) as weight
    from overhead_weights as weights
    cross join (select distinct currency from totals where pool_id = 'none')
    where weights.base = 'direct_cost'
    group by all
),

others as (
    select totals.*, direct_costs.team_id, direct_costs.weight
    from totals
    inner join direct_costs using (usage_date, pool_id, component, currency)
    anti join scope_teams
        on
            totals.usage_date = scope_teams.usage_date
            and totals.adjustment_id = scope_teams.adjustment_id
            and totals.pool_id = scope_teams.pool_id
            and totals.component = scope_teams.component
            and totals.currency = scope_teams.currency
            and direct_costs.team_id = scope_teams.team_id
    where totals.funded_by = 'all' and direct_costs.weight > 0
),

weighted as (
    select * from others
    union all by name
    select totals.*, case when funded_by = 'all' then 'platform' else funded_by end as team_id, 1 as weight
    from totals
    anti join others using (usage_date, adjustment_id, pool_id, component, currency)
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by usage_date, adjustment_id, pool_id, component, currency order by team_id rows unbounded preceding
        ) as running,
        sum(weight) over (partition by usage_date, adjustment_id, pool_id, component, currency) as total
    from weighted
)

select
    running.*,
    -part(whole, weight, running, total) as amount
from running;
