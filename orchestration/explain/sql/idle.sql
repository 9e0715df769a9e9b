-- What each idle cause cost, and by which rule whom it is charged to.
-- What the facts cannot answer is taken from the books, and said so: who reserved which node, and the energy that teams
-- drew where its weight is no energy.

create or replace temp table idle_costs as
with causes as (
    select
        slot,
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
    select distinct usage_date, pool_id, idle_cause from causes where idle_cost <> 0
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
    usage_date,
    case when idle_rule like '%/hour' then hour_at end as hour_at,
    case when idle_rule like '%/hour' then slot end as slot,
    pool_id,
    component,
    currency,
    idle_cause,
    idle_rule,
    rules.policy_row,
    methods.idle_ceiling,
    methods.policy_row as ceiling_row,
    -- Who reserved which node is in no fact; a rule that is new to receipts is shown as booked, too.
    idle_rule not in (
        'proportional/day', 'proportional/hour', 'even/day', 'entitlement/day', 'owner/day', 'peak/day', 'platform/day'
    )
    or (
        component = 'energy'
        and (
            (idle_rule = 'peak/day' and (methods.method = 'time' or methods.intensity_metric is not null))
            or (idle_rule = 'even/day' and methods.intensity_metric is not null)
        )
    ) as is_unknown,
    cast(sum(idle_cost) as decimal(38, 9)) as whole
from causes
inner join rules using (usage_date, pool_id, idle_cause)
inner join methods using (usage_date, pool_id, component)
where idle_cost <> 0
group by all;

-- A ceiling looks at all causes together, so where one of them is unknown, all are.
create or replace temp table idle_unknown as
select distinct cells.usage_date, cells.pool_id, cells.component, cells.currency, cells.idle_cause
from idle_costs as cells
inner join (from idle_costs where is_unknown) as unknown using (usage_date, pool_id, component, currency)
where cells.idle_cause = unknown.idle_cause or unknown.idle_ceiling is not null;

create or replace temp table idle_known as
select row_number() over () as pot, idle_costs.*
from idle_costs
anti join idle_unknown using (usage_date, pool_id, component, currency, idle_cause);

-- What each team held in its highest hour of the day.
create or replace temp table peaks as
select usage_date, pool_id, component, team_id, max(quantity) as demand
from (
    select usage_date, hour_at, pool_id, component, team_id, sum(quantity) as quantity
    from held_rows
    semi join (from idle_known where idle_rule in ('even/day', 'peak/day')) as asked_for using (usage_date, pool_id, component)
    -- Of energy some quantities are unknown; `even` asks only who used any.
    where quantity > 0 or quantity is null
    group by all
)
group by all;

-- The airport game: the cost goes over the steps from one demand to the next higher, each is paid by all who reach it.
create or replace temp view peak_pots as
from idle_known where idle_rule = 'peak/day';

create or replace temp view peak_steps as
select
    pot,
    demand as place,
    null as payer,
    demand - lag(demand, 1, 0) over (partition by pot order by demand) as weight
from (select distinct pot, demand from peak_pots inner join peaks using (usage_date, pool_id, component));

create or replace temp table idle_pots as
select *, cast(null as hugeint) as step
from idle_known
where idle_rule <> 'peak/day' or (usage_date, pool_id, component) not in (select (usage_date, pool_id, component) from peaks)
union all by name
select
    * exclude (pot, place, payer, weight, running, total, whole, amount),
    -- Behind the numbers of all other pots.
    row_number() over () + (select count(*) from idle_known) as pot,
    place as step,
    amount as whole
from split('peak_pots', 'peak_steps');

create or replace temp table idle_claims as
with busy_slots as (
    select distinct slot from held where weight > 0
),

claims as (
    -- In hours without use, the day's users pay.
    select pot, held_by_day.payer, held_by_day.weight
    from idle_pots
    inner join held_by_day using (usage_date, pool_id, component)
    where
        idle_rule = 'proportional/day'
        or (idle_rule = 'proportional/hour' and slot not in (select slot from busy_slots))
    union all by name
    select pot, held.payer, held.weight
    from idle_pots
    inner join held using (slot)
    where idle_rule = 'proportional/hour'
    union all by name
    select pot, teams.payer, 1 as weight
    from idle_pots
    inner join peaks using (usage_date, pool_id, component)
    inner join teams using (team_id)
    where idle_rule = 'even/day' or (idle_rule = 'peak/day' and demand >= step)
    union all by name
    select
        pot,
        teams.payer,
        gpu_units(gpus) as weight,
        policy_name('entitlements', pool_id || '/' || team_id, valid_from) as weight_row
    from idle_pots
    inner join seeds.entitlements using (pool_id)
    inner join teams using (team_id)
    where idle_rule = 'entitlement/day' and is_valid(valid_from, valid_to, usage_date)
    union all by name
    select pot, teams.payer, 1 as weight
    from idle_pots
    inner join core.fct_pool_days as pools using (usage_date, pool_id)
    inner join teams on pools.owner_team_id = teams.team_id
    where idle_rule = 'owner/day'
)

select *, null as place
from claims
where weight > 0
union all by name
select pot, teams.payer, 1 as weight
from idle_pots
cross join (from teams where team_id = 'platform') as teams
where pot not in (select pot from claims where weight > 0);

create or replace temp table idle_parts as
from split('idle_pots', 'idle_claims');

-- A ceiling says which share of the pool's cost its users pay as idle at most; the platform pays the rest.
create or replace temp table ceiling_claims as
with costs as (
    select usage_date, pool_id, component, currency, sum(cost) as cost
    from hours
    group by all
),

charged as (
    select
        usage_date, pool_id, component, currency, idle_cause, policy_row, idle_ceiling, ceiling_row, payer,
        sum(amount) as uncapped
    from idle_parts
    where idle_ceiling is not null and payer not in (select payer from teams where team_id = 'platform')
    group by all
)

select
    dense_rank() over (order by usage_date, pool_id, component, currency) as pot,
    idle_cause as place,
    charged.*,
    cost,
    nano(uncapped) as weight
from charged
inner join costs using (usage_date, pool_id, component, currency)
qualify
    cost > 0
    and nano(sum(uncapped) over (partition by usage_date, pool_id, component, currency)) * 1000000000
    > nano(cost) * nano(idle_ceiling);

create or replace temp view ceiling_pots as
select distinct pot, share(cost, nano(idle_ceiling), nano(1)) as whole
from ceiling_claims;

create or replace temp table ceiling_parts as
from split('ceiling_pots', 'ceiling_claims');

-- grain: one row per day, pool, component, currency, cause, payer and policy row: the idle rows of the books
create or replace temp table idle_rows as
select
    usage_date, pool_id, component, currency, idle_cause, payer, policy_row,
    true as is_recomputed,
    sum(amount) as amount
from idle_parts
where
    payer in (select payer from teams where team_id = 'platform')
    or (usage_date, pool_id, component, currency) not in (
        select (usage_date, pool_id, component, currency) from ceiling_parts
    )
group by all
union all by name
select usage_date, pool_id, component, currency, idle_cause, payer, policy_row, true as is_recomputed, amount
from ceiling_parts
union all by name
select
    usage_date, pool_id, component, currency, idle_cause,
    (select payer from teams where team_id = 'platform') as payer,
    ceiling_row as policy_row,
    true as is_recomputed,
    sum(uncapped - amount) as amount
from ceiling_parts
group by all
union all by name
select
    usage_date, pool_id, component, currency, idle_cause, payer, policy_row,
    false as is_recomputed,
    amount
from booked
inner join idle_unknown using (usage_date, pool_id, component, currency, idle_cause)
where allocation_kind = 'idle';
