-- What the books say of one job or one team, beside what comes out when it is worked out again. The variable `by_day` says
-- whether each day is shown (`day`) or all of them in sum.
create or replace temp macro shown_day(usage_date) as case when getvariable('by_day') then usage_date end;

-- grain: one row per day, pool, component, currency, kind and cause (transfers: and policy row)
create or replace temp table lines as
with both_sides as (
    select
        usage_date, pool_id, component, currency, allocation_kind, idle_cause, policy_row,
        is_recomputed,
        amount as recomputed
    from recomputed
    where is_mine
    union all by name
    select
        usage_date, pool_id, component, currency, allocation_kind, idle_cause, policy_row,
        reason,
        counterparty_team_id,
        amount as booked
    from core.fct_cost_allocations
    semi join days using (usage_date)
    where is_mine(team_id, job_key)
)

select
    shown_day(usage_date) as day,
    usage_date,
    pool_id,
    component,
    currency,
    allocation_kind,
    idle_cause,
    case when allocation_kind in ('burst', 'outcome_credit', 'adjustment') then policy_row end as transfer_row,
    list(distinct policy_row) filter (booked is not null) as policy_rows,
    list(distinct policy_row) filter (recomputed is not null) as recomputed_rows,
    list(distinct reason) as reasons,
    list(distinct counterparty_team_id) as counterparties,
    bool_and(coalesce(is_recomputed, true)) as is_recomputed,
    cast(coalesce(sum(recomputed), 0) as decimal(38, 9)) as recomputed,
    cast(coalesce(sum(booked), 0) as decimal(38, 9)) as booked
from both_sides
group by all;

-- grain: one row per line, step of its arithmetic, and hour (none: the day): whole × weight ÷ total = amount
-- A team's payers stand next to each other in every split, so its part is that of their weights together.
create or replace temp table steps as
with mine as (
    select payer from payers where is_mine
),

held_totals as (
    select slot, sum(quantity) as total_quantity
    from held
    where slot in (select slot from held semi join mine using (payer))
    group by slot
),

parts as (
    select
        usage_date, hour_at, pool_id, component, currency,
        'direct' as allocation_kind,
        'direct' as step,
        whole, weight, running, total, amount,
        -- All idle, and no floor: in such an hour, what was held decides.
        case when total = total_quantity then held_unit else unit end as unit,
        case when total = total_quantity then held_per_unit else per_unit end as per_unit
    from direct_rows
    semi join mine using (payer)
    inner join held_totals using (slot)
    inner join units using (usage_date, pool_id, component)
    union all by name
    select
        usage_date, pool_id, component, currency,
        'direct' as allocation_kind,
        case when owner_team_id is null then 'driver' else 'owned' end as step,
        whole, weight, running, total, amount,
        case driver
            when 'gpu_seconds' then 'GPU-s'
            when 'cpu_core_seconds' then 'core-s'
            when 'memory_gib_seconds' then 'GiB-s'
            when 'gib_hours_stored' then 'GiB-h stored'
            when 'seat_hours' then 'seat-h'
            when 'bytes_out' then 'bytes sent'
        end as unit,
        case driver
            when 'gpu_seconds' then 25200000
            when 'cpu_core_seconds' then 1000000
            when 'memory_gib_seconds' then 1024000
            when 'gib_hours_stored' then 3686400000
            when 'seat_hours' then 3600000
            else 1
        end as per_unit
    from daily_parts
    semi join mine using (payer)
    where is_recomputed
    union all by name
    select
        usage_date, hour_at, pool_id, component, currency,
        'idle' as allocation_kind,
        idle_cause,
        'idle' as step,
        idle_rule as rule,
        step as part_number,
        weight_row,
        share(1, step, case when held_unit = 'kWh' then 1 else 3600 end * held_per_unit::hugeint) as used_hours,
        replace(held_unit, '-s', '-h') as reach_unit,
        whole, weight, running, total, amount,
        case
            when idle_rule in ('even/day', 'peak/day') then 'teams'
            when idle_rule = 'entitlement/day' then 'entitled GPUs'
            when idle_rule like 'proportional/%' then unit
        end as unit,
        case
            when idle_rule = 'entitlement/day' then 25200
            when idle_rule like 'proportional/%' then per_unit
            else 1
        end as per_unit
    from idle_parts
    semi join mine using (payer)
    inner join units using (usage_date, pool_id, component)
    union all by name
    select
        usage_date, pool_id, component, currency,
        'idle' as allocation_kind,
        idle_cause,
        'ceiling' as step,
        cost as base,
        idle_ceiling as value,
        ceiling_row as weight_row,
        whole, weight, running, total, amount,
        currency as unit,
        1000000000 as per_unit
    from ceiling_parts
    semi join mine using (payer)
    union all by name
    select
        usage_date, pool_id, component, currency, allocation_kind,
        'shared' as step,
        overhead_base as rule,
        weight_row,
        whole, weight, running, total, amount,
        case overhead_base
            when 'direct_cost' then getvariable('reporting_currency') || ' of direct cost'
            when 'gpu_hours' then 'GPU-h'
            when 'headcount' then 'people'
            when 'fixed' then 'of the fixed shares'
        end as unit,
        case overhead_base when 'gpu_hours' then 90720000000 when 'headcount' then 1 else 1000000000 end as per_unit
    from shared_parts
    semi join mine using (payer)
    union all by name
    -- What a team is due; of a job's burst this is the first step.
    select
        usage_date, hour_at, pool_id,
        'gpu' as component,
        currency,
        'burst' as allocation_kind,
        policy_row as transfer_row,
        'due' as step,
        case when is_burst then 'burst' else 'base' end as rule,
        charged as less,
        share(1, used, 90720000000) as used_hours,
        share(1, entitled, 90720000000) as entitled_hours,
        whole, weight, running, total,
        moved as amount,
        'GPU-s' as unit,
        25200000 as per_unit
    from burst_teams
    where payer in (from mine) or (pot, team_id) in (select (hour_pot, team_id) from burst_parts semi join mine using (payer))
    union all by name
    select
        usage_date, hour_at, pool_id,
        'gpu' as component,
        currency,
        'burst' as allocation_kind,
        policy_row as transfer_row,
        'carried' as step,
        whole, weight, running, total, amount,
        unit,
        per_unit
    from burst_parts
    semi join mine using (payer)
    inner join (from units where component = 'gpu') as units using (usage_date, pool_id)
    union all by name
    select
        usage_date, hour_at, pool_id,
        'gpu' as component,
        currency,
        'burst' as allocation_kind,
        policy_row as transfer_row,
        case when is_borrower then 'borrowed' else 'lent' end as step,
        lender_share as value,
        cost as base,
        share(1, lent, 90720000000) as used_hours,
        share(1, capacity, 90720000000) as entitled_hours,
        whole, weight, running, total, amount,
        'GPU-s' as unit,
        25200000 as per_unit
    from lender_parts
    semi join mine using (payer)
    union all by name
    select
        usage_date, hour_at, pool_id, component, currency,
        'outcome_credit' as allocation_kind,
        policy_row as transfer_row,
        'lost' as step,
        share(1, lost_ms::hugeint, 1000) as value,
        whole, weight, running, total, amount,
        's' as unit,
        1000 as per_unit
    from outcome_parts
    semi join mine using (payer)
    semi join (from outcome_rows where is_recomputed) as known using (usage_date, payer)
    union all by name
    select
        usage_date, pool_id, component, currency,
        'adjustment' as allocation_kind,
        policy_row as transfer_row,
        adjustment_kind as step,
        value,
        scope_cost as base,
        share(1, scope_held, 90720000000) as used_hours,
        less,
        whole, weight, running, total, amount,
        case adjustment_kind when 'rate' then 'GPU-s' else currency end as unit,
        case adjustment_kind when 'rate' then 25200000 when 'percent' then 1000000000 else 1 end as per_unit
    from adjustment_parts
    semi join mine using (payer)
    where amount <> 0
    union all by name
    select
        usage_date, pool_id, component, currency,
        'adjustment' as allocation_kind,
        policy_row as transfer_row,
        'funding' as step,
        whole, weight, running, total, amount,
        currency as unit,
        1000000000 as per_unit
    from funding_parts
    semi join mine using (payer)
    where amount <> 0
),

summed as (
    select
        usage_date, hour_at, pool_id, component, currency, allocation_kind, idle_cause, transfer_row,
        step, rule, part_number, value, base, used_hours, entitled_hours, reach_unit, unit, per_unit, whole, total,
        coalesce(list(distinct weight_row) filter (weight_row is not null), []) as weight_rows,
        sum(less) as less,
        sum(weight) as weight,
        max(running) as running,
        cast(sum(amount) as decimal(38, 9)) as amount
    from parts
    group by all
)

select
    shown_day(usage_date) as day,
    summed.*,
    -- What the quotient alone gives, and the running shares, whose difference can have another last decimal.
    share(whole, weight, total) as quotient,
    share(whole, running, total) as share_up_to,
    share(whole, running - weight, total) as share_before
from summed;

-- How the weight of a job came about, where it is not just what it held: grain of its hours by pool and component.
create or replace temp table weighings as
with nodes as (
    select usage.*, coalesce(stays.gpu_model, pools.gpu_model) as gpu_model
    from core.fct_job_usage_hourly as usage
    semi join days using (usage_date)
    left join (
        select usage_date, cluster_id, node_name, pool_id, max(gpu_model) as gpu_model
        from core.fct_node_days
        group by all
    ) as stays using (usage_date, cluster_id, node_name, pool_id)
    left join core.fct_pool_days as pools using (usage_date, pool_id)
    where is_mine(null, job_key)
),

by_component as (
    select *, 'gpu' as component, gpu_seconds * 25200000 as quantity, gpu_weight as weight from nodes
    union all by name
    select *, 'cpu' as component, cpu_core_seconds * 1000000 as quantity, cpu_weight as weight from nodes
    union all by name
    select *, 'memory' as component, memory_gib_seconds * 1024000 as quantity, memory_weight as weight from nodes
)

select
    usage_date,
    hour_at,
    pool_id,
    component,
    nodes.workload_class,
    list(distinct class_weight) as class_weights,
    list(distinct policy_name('complexity_weights', weights.workload_class || '/' || weights.gpu_model, weights.valid_from))
        filter (weights.weight is not null) as weight_rows,
    share(1, sum(round(quantity))::hugeint, any_value(held_per_unit)) as held,
    any_value(held_unit) as held_unit,
    -- The activity of the hour, from telemetry: what the weight has beyond quantity and class.
    case
        when any_value(methods.intensity_metric) is not null
            then share(1, sum(nodes.weight)::hugeint, sum(round(quantity) * round(class_weight * 1000))::hugeint * 1000000)
    end as activity
from by_component as nodes
inner join methods using (usage_date, pool_id, component)
inner join units using (usage_date, pool_id, component)
left join lateral (
    select rules.*
    from seeds.complexity_weights as rules
    where
        rules.workload_class in (nodes.workload_class, '*')
        and rules.gpu_model in (nodes.gpu_model, '*')
        and is_valid(rules.valid_from, rules.valid_to, nodes.usage_date)
    order by rules.workload_class = '*', rules.gpu_model = '*'
    limit 1
) as weights on true
where methods.method = 'complexity'
group by all;
