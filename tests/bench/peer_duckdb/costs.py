"""Bill lines to components, pools and hours; their used and idle parts to jobs; the rest to teams."""

from __future__ import annotations

from tests.bench.peer_duckdb.arithmetic import COMPONENTS, each

# A node's line is cut by the price weights of its type; what list, billed and effective cost are is cut alike.
LINES = f"""
select
    usage_date, charge_key, currency, source, provider, invoice_id, billing_period_start_at, charge_category,
    charge_description, service_name, resource_id, tags, is_final, charge_start_at, charge_end_at,
    epoch_us(charge_start_at) // 3600000000 as hour,
    coalesce(nodes.pool_id, rules.pool_id) as pool_id,
    component,
    cost_rule,
    list_cost, billed_cost, effective_cost,
    {each("{name}_weight")},
    cpu_weight + gpu_weight + memory_weight as weight
from (select *, date as usage_date from landed_charges) as landed_charges
inner join (
    select service_name, component, pool_id, policy_row('cost_rules', rule_order, valid_from) as cost_rule
    from cost_rules
) as rules using (service_name)
left join (select usage_date, resource_id, pool_id, instance_type from nodes) as nodes using (usage_date, resource_id)
left join prices using (instance_type)
"""


_RUNNING = {"cpu": "cpu_weight", "gpu": "cpu_weight + gpu_weight", "memory": "weight"}


def cut(cost: str, component: str) -> str:
    """What a component's part of a node's line is, in integers of 1e-9."""
    return f"part(nano({cost}), {component}_weight, {_RUNNING[component]}, weight)"


NODE_COSTS = f"""
select
    usage_date,
    hour::integer as hour,
    pool_id,
    {", ".join(f"sum({cut('effective_cost', name)})::bigint as {name}_cost" for name in COMPONENTS)}
from lines
where component = 'node'
group by usage_date, hour, pool_id
"""

STATUSES = """
select usage_date, pool_id, if(bool_and(is_final), 'final', 'provisional') as cost_status
from lines
group by usage_date, pool_id
"""

POOL_HOURS = f"""
with capacity as (
    select usage_date, pool_id, {each("sum({amount}) * 3600 as {name}_capacity")}
    from nodes
    group by usage_date, pool_id
),
weights as (
    select hour, pool_id, {each("sum({name})::bigint as {name}")} from job_hours group by hour, pool_id
)
select
    usage_date, hour, pool_id,
    {each("{name}_cost")},
    {each("{name}_capacity")},
    {each("weights.{name} as {name}_weight")},
    {each("coalesce(weights.{name} * {name}_unit, 0) as {name}_held")},
    {each("wide_share({name}_cost, {name}_held, {name}_capacity)::bigint as {name}_used_cost")},
    {each("({name}_cost - {name}_used_cost)::bigint as {name}_idle_cost")}
from node_costs
inner join capacity using (usage_date, pool_id)
left join weights using (hour, pool_id)
cross join units
"""

# What a job pays for its hours of the day, and by what it shares the day's idle. Running sums are of whole numbers
# below 2^53, which floating point adds exactly, and several times as fast as the 128 bits of a sum of integers.
JOB_DAYS = f"""
select
    usage_date, pool_id, payer,
    {each("sum({name})::bigint as {name}")},
    {each("sum(part({name}_used_cost, {name}, {name}_running, {name}_weight))::bigint as {name}_direct")}
from (
    select *, {each("(sum({name}::double) over payers)::bigint as {name}_running")}
    from job_hours
    window payers as (partition by hour, pool_id order by payer rows unbounded preceding)
)
inner join pool_hours using (usage_date, hour, pool_id)
group by usage_date, pool_id, payer
"""

PAID = f"""
select
    usage_date, pool_id, cost_status, payer, team_id, user_name, job_key,
    {each("{name} * {name}_unit // {unit} as {name}_seconds")},
    {each("{name}_direct")},
    {each("part({name}_idle_cost, {name}, {name}_running, {name}_total) as {name}_idle")},
    {each("{name}_idle_cost <> 0 as has_{name}_idle")}
from (
    select *, {each("(sum({name}::double) over payers)::bigint as {name}_running")}
    from job_days
    window payers as (partition by usage_date, pool_id order by payer rows unbounded preceding)
)
inner join (
    select
        usage_date, pool_id,
        {each("sum({name}_weight)::bigint as {name}_total")},
        {each("sum({name}_idle_cost)::bigint as {name}_idle_cost")}
    from pool_hours
    group by usage_date, pool_id
) using (usage_date, pool_id)
inner join statuses using (usage_date, pool_id)
inner join (select payer, team_id, user_name, job_key from jobs) using (payer)
cross join units
"""

OWNERS = """
select tags, coalesce(team_id, 'unattributed') as team_id
from (select distinct tags from lines where component = 'storage')
left join payer_rules on payer_rules.tag = 'team=' || (tags ->> 'team')
"""

TAGGED = """
select
    usage_date, pool_id, component, team_id,
    sum(nano(effective_cost))::bigint as amount
from lines
inner join owners using (tags)
where component = 'storage'
group by usage_date, pool_id, component, team_id
"""

OVERHEAD = """
with weights as (
    select usage_date, team_id, sum(amount) as weight
    from (
        select usage_date, team_id, amount from tagged
        union all
        select usage_date, team_id, cpu_direct + gpu_direct + memory_direct from paid
    )
    group by usage_date, team_id
),
running as (
    select
        *,
        sum(weight) over (partition by usage_date order by team_id rows unbounded preceding) as running,
        sum(weight) over (partition by usage_date) as total
    from weights
)
select
    usage_date, pool_id, component, team_id,
    (wide_share(cost, running, total) - wide_share(cost, running - weight, total))::bigint as amount
from running
inner join (
    select usage_date, pool_id, component, sum(nano(effective_cost)) as cost
    from lines
    where component = 'network'
    group by usage_date, pool_id, component
) using (usage_date)
"""

STEPS = {
    "lines": LINES,
    "node_costs": NODE_COSTS,
    "statuses": STATUSES,
    "pool_hours": POOL_HOURS,
    "job_days": JOB_DAYS,
    "paid": PAID,
    "owners": OWNERS,
    "tagged": TAGGED,
    "overhead": OVERHEAD,
}
