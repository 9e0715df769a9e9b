-- What each idle cause cost, and by which rule whom it is charged to.
-- Rules that the facts cannot answer are taken from the books, and said so: who reserved which node, and the energy
-- that teams drew where its weight is no energy.

create or replace temp table idle_costs as
with causes as (
    select
        usage_date,
        hour_at,
        pool_id,
        component,
        currency,
        unnest(
            [
                {'idle_cause': 'down', 'idle_cost': down_cost},
                {'idle_cause': 'reserved', 'idle_cost': reserved_cost},
                {'idle_cause': 'stranded', 'idle_cost': stranded_cost},
                {'idle_cause': 'unscheduled', 'idle_cost': unscheduled_cost}
            ],
            recursive := true
        )
    from hours
),

cells as (
    select distinct usage_date, pool_id, idle_cause from causes
),

rules as (
    select
        cells.*,
        policy_name('idle_policies', policies.pool_id || '/' || policies.idle_cause, policies.valid_from) as policy_row,
        case
            when policies.policy is null then 'proportional/day'
            when policies.policy = 'proportional' then 'proportional/' || coalesce(policies.idle_window, 'day')
            when policies.policy = 'owner' and cells.idle_cause = 'reserved' then 'owner/hour'
            else policies.policy || '/day'
        end as idle_rule
    from cells
    left join seeds.idle_policies as policies
        on
            policies.pool_id in (cells.pool_id, '*')
            and policies.idle_cause in (cells.idle_cause, '*')
            and is_valid(policies.valid_from, policies.valid_to, cells.usage_date)
    qualify
        row_number() over (
            partition by cells.usage_date, cells.pool_id, cells.idle_cause
            order by policies.pool_id = '*', policies.idle_cause = '*'
        ) = 1
)

select
    causes.usage_date,
    case when rules.idle_rule like '%/hour' then causes.hour_at end as hour_at,
    causes.pool_id,
    causes.component,
    causes.currency,
    causes.idle_cause,
    rules.idle_rule,
    rules.policy_row,
    methods.idle_ceiling,
    methods.policy_row as ceiling_row,
    rules.idle_rule = 'owner/hour'
    or (
        causes.component = 'energy'
        and (
            (rules.idle_rule = 'peak/day' and (methods.method = 'time' or methods.intensity_metric is not null))
            or (rules.idle_rule = 'even/day' and methods.intensity_metric is not null)
        )
    ) as is_unknown,
    cast(sum(causes.idle_cost) as decimal(38, 9)) as whole
from causes
inner join rules using (usage_date, pool_id, idle_cause)
inner join methods using (usage_date, pool_id, component)
where causes.idle_cost <> 0
group by all;

-- grain: one row per day, hour (none: the day), pool, component, rule, step and payer. Only `peak` has more than one step.
create or replace temp table idle_weights as
with asked_for as (
    select distinct usage_date, pool_id, component, idle_rule from idle_costs where not is_unknown
),

peaks as (
    select
        usage_date,
        pool_id,
        component,
        idle_rule,
        team_id,
        max(quantity) as demand
    from (
        select asked_for.*, held.hour_at, held.team_id, sum(held.quantity) as quantity
        from asked_for
        inner join held using (usage_date, pool_id, component)
        where asked_for.idle_rule in ('peak/day', 'even/day')
        group by all
    )
    group by all
),

steps as (
    select
        usage_date,
        pool_id,
        component,
        demand as step,
        demand - lag(demand, 1, 0) over (partition by usage_date, pool_id, component order by demand) as step_weight
    from (select distinct usage_date, pool_id, component, demand from peaks where idle_rule = 'peak/day')
),

by_job as (
    select asked_for.*, cast(null as timestamp) as hour_at, team_id, project_id, user_name, job_key, sum(weight) as weight
    from asked_for
    inner join held using (usage_date, pool_id, component)
    where idle_rule like 'proportional/%'
    group by all
    union all by name
    select asked_for.*, hour_at, team_id, project_id, user_name, job_key, weight
    from asked_for
    inner join held using (usage_date, pool_id, component)
    where idle_rule = 'proportional/hour'
),

by_team as (
    select usage_date, pool_id, component, idle_rule, team_id, 1 as weight
    from peaks
    where idle_rule = 'even/day'
    union all by name
    select asked_for.*, team_id, cast(round(gpus * 25200) as hugeint) as weight
    from asked_for
    inner join seeds.entitlements using (pool_id)
    where idle_rule = 'entitlement/day' and is_valid(valid_from, valid_to, usage_date)
    union all by name
    select asked_for.*, owner_team_id as team_id, 1 as weight
    from asked_for
    inner join core.fct_pool_days using (usage_date, pool_id)
    where idle_rule = 'owner/day' and owner_team_id is not null
)

select *, 1 as step, 1 as step_weight from by_job where weight > 0
union all by name
select *, 1 as step, 1 as step_weight from by_team where weight > 0
union all by name
select usage_date, pool_id, component, idle_rule, team_id, 1 as weight, step, step_weight
from steps
inner join peaks using (usage_date, pool_id, component)
where idle_rule = 'peak/day' and step <= demand;

create or replace temp table idle_uncapped as
with costs as (
    select
        idle_costs.*,
        -- Whose weights count: those of the hour if it has any, else those of the day.
        case
            when (usage_date, pool_id, component, idle_rule, hour_at) in (
                select (usage_date, pool_id, component, idle_rule, hour_at) from idle_weights
            ) then hour_at
        end as weight_hour_at
    from idle_costs
    where not is_unknown
),

steps as (
    select distinct usage_date, pool_id, component, idle_rule, hour_at as weight_hour_at, step, step_weight
    from idle_weights
),

stepped as (
    select
        costs.*,
        steps.step,
        steps.step_weight,
        sum(steps.step_weight) over (
            partition by costs.usage_date, costs.hour_at, costs.pool_id, costs.component, costs.currency, costs.idle_cause
            order by steps.step
            rows unbounded preceding
        ) as running_step,
        sum(steps.step_weight) over (
            partition by costs.usage_date, costs.hour_at, costs.pool_id, costs.component, costs.currency, costs.idle_cause
        ) as total_step
    from costs
    left join steps
        on
            costs.usage_date = steps.usage_date
            and costs.pool_id = steps.pool_id
            and costs.component = steps.component
            and costs.idle_rule = steps.idle_rule
            and costs.weight_hour_at is not distinct from steps.weight_hour_at
),

weighted as (
    select
        stepped.* exclude (whole, step_weight, running_step, total_step),
        coalesce(part(stepped.whole, stepped.step_weight, stepped.running_step, stepped.total_step), stepped.whole) as whole,
        coalesce(weights.team_id, 'platform') as team_id,
        weights.project_id,
        weights.user_name,
        weights.job_key,
        coalesce(weights.weight, 1) as weight
    from stepped
    left join idle_weights as weights
        on
            stepped.usage_date = weights.usage_date
            and stepped.pool_id = weights.pool_id
            and stepped.component = weights.component
            and stepped.idle_rule = weights.idle_rule
            and stepped.step = weights.step
            and stepped.weight_hour_at is not distinct from weights.hour_at
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by usage_date, hour_at, pool_id, component, currency, idle_cause, step
            order by team_id, project_id, user_name, job_key
            rows unbounded preceding
        ) as running,
        sum(weight) over (
            partition by usage_date, hour_at, pool_id, component, currency, idle_cause, step
        ) as total
    from weighted
)

select
    running.*,
    part(whole, weight, running, total) as amount
from running;

-- What the facts cannot answer. A ceiling looks at all causes together, so there the whole of them is unknown.
create or replace temp table idle_unknown as
select distinct
    cells.usage_date,
    cells.pool_id,
    cells.component,
    cells.currency,
    cells.idle_cause
from idle_costs as cells
inner join idle_costs as unknown
    on
        unknown.is_unknown
        and cells.usage_date = unknown.usage_date
        and cells.pool_id = unknown.pool_id
        and cells.component = unknown.component
        and cells.currency = unknown.currency
        and (cells.idle_cause = unknown.idle_cause or unknown.idle_ceiling is not null);

-- A ceiling says which share of the pool's cost its users pay as idle at most; the platform pays the rest.
create or replace temp table idle_capped as
with costs as (
    select usage_date, pool_id, component, currency, sum(cost) as cost from hours group by all
),

rows as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        idle_rule,
        policy_row,
        idle_ceiling,
        ceiling_row,
        team_id,
        project_id,
        user_name,
        job_key,
        sum(amount) as uncapped
    from idle_uncapped
    anti join idle_unknown using (usage_date, pool_id, component, currency, idle_cause)
    where idle_ceiling is not null and team_id <> 'platform'
    group by all
),

exceeded as (
    select
        rows.*,
        costs.cost,
        share(costs.cost, nano(rows.idle_ceiling), nano(1)) as whole,
        greatest(nano(rows.uncapped), 0) as weight,
        sum(rows.uncapped) over (partition by usage_date, pool_id, component, currency) as charged
    from rows
    inner join costs using (usage_date, pool_id, component, currency)
    qualify
        costs.cost > 0 and nano(charged) * 1000000000 > nano(costs.cost) * nano(rows.idle_ceiling)
),

running as (
    select
        exceeded.*,
        sum(weight) over (
            partition by usage_date, pool_id, component, currency
            order by idle_cause, team_id, project_id, user_name, job_key
            rows unbounded preceding
        ) as running,
        sum(weight) over (partition by usage_date, pool_id, component, currency) as total
    from exceeded
)

select
    running.*,
    part(whole, weight, running, total) as amount
from running;

-- grain: one row per day, pool, component, currency, cause, payer and policy row: the idle rows of the books
create or replace temp table idle_rows as
select
    usage_date,
    pool_id,
    component,
    currency,
    idle_cause,
    team_id,
    project_id,
    user_name,
    job_key,
    policy_row,
    true as is_recomputed,
    sum(amount) as amount
from idle_uncapped
anti join idle_unknown using (usage_date, pool_id, component, currency, idle_cause)
where
    team_id = 'platform'
    or (usage_date, pool_id, component, currency) not in (
        select (usage_date, pool_id, component, currency) from idle_capped
    )
group by all
union all by name
select
    usage_date,
    pool_id,
    component,
    currency,
    idle_cause,
    team_id,
    project_id,
    user_name,
    job_key,
    policy_row,
    true as is_recomputed,
    amount
from idle_capped
union all by name
select
    usage_date,
    pool_id,
    component,
    currency,
    idle_cause,
    'platform' as team_id,
    ceiling_row as policy_row,
    true as is_recomputed,
    sum(uncapped - amount) as amount
from idle_capped
group by all
union all by name
select
    usage_date,
    pool_id,
    component,
    currency,
    idle_cause,
    team_id,
    project_id,
    user_name,
    job_key,
    policy_row,
    false as is_recomputed,
    amount
from core.fct_cost_allocations
inner join idle_unknown using (usage_date, pool_id, component, currency, idle_cause)
where allocation_kind = 'idle';
