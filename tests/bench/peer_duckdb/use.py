"""What jobs held, and what telemetry says of it."""

from __future__ import annotations

from tests.bench.peer_duckdb.arithmetic import each

NODES = """
select date as usage_date, node_name, resource_id, pool_id, instance_type, gpu_units, cpu_millicores, memory_mib
from landed_node_inventory
"""

# Jobs are numbered in the order in which payers are charged, so that no text is sorted again.
JOBS = """
select
    landed_jobs.date as usage_date,
    row_number() over (
        order by coalesce(team_id, 'unattributed'), landed_jobs.user_name nulls first, job_key, landed_jobs.date
    )::integer as payer,
    coalesce(team_id, 'unattributed') as team_id,
    landed_jobs.user_name,
    job_key,
    job_id,
    job_name,
    state,
    part_id,
    string_split(node_names, ',') as node_names,
    gpu_units,
    cpu_millicores,
    memory_mib,
    start_at,
    coalesce(end_at, as_of_at) as end_at,
    greatest(epoch_us(start_at), epoch_us(date)) // 1000000 as start_s,
    least(epoch_us(coalesce(end_at, as_of_at)), epoch_us(date) + 86400000000) // 1000000 as end_s
from landed_jobs
left join payer_rules on landed_jobs.account = payer_rules.account
where end_s > start_s
"""

JOB_NODES = f"""
select
    usage_date, payer, part_id, start_s, end_s, pool_id, node_name, node_count,
    {each("job.{amount} // node_count as {amount}")}
from (
    select
        usage_date, payer, part_id, start_s, end_s, gpu_units, cpu_millicores, memory_mib,
        unnest(node_names) as node_name,
        len(node_names) as node_count
    from jobs
) as job
inner join nodes using (usage_date, node_name)
"""

# Weights are counted in the greatest unit that divides what any job holds: one GPU, the cores that come with it.
UNITS = f"""
select {each("list_reduce(list(distinct {amount}), lambda one, other: gcd(one, other)) as {name}_unit")}
from job_nodes
"""

JOB_POOLS = f"""
select
    payer, usage_date, start_s, end_s, pool_id,
    {each("sum({amount}) // any_value({name}_unit) as {name}")}
from job_nodes
cross join units
group by payer, usage_date, start_s, end_s, pool_id
"""

HOURS = "unnest(range(start_s // 3600, (end_s + 3599) // 3600))"
SECONDS = "(least(end_s, hour * 3600 + 3600) - greatest(start_s, hour * 3600))"

JOB_HOURS = f"""
select
    usage_date, hour::integer as hour, pool_id, payer,
    {SECONDS} as seconds,
    {each("({name} * seconds)::bigint as {name}")}
from (select *, {HOURS} as hour from job_pools)
"""

# The samples are read once. What a GPU's counter added between the first and the last sample of a stretch is carried
# over to the time that its samples stand for; where there were gaps, power times time counts.
GPU_HOURS = """
select
    node_name,
    part_id,
    hour::integer as hour,
    sum(sampled_ms)::bigint as sampled_ms,
    sum(busy_millipercent_ms)::bigint as busy_millipercent_ms,
    sum(
        case
            when counter_last > counter_first and span_ms > 0 and span_ms <= sampled_ms
                then (
                    2000 * (counter_last - counter_first)::bigint * (sampled_ms // 1000) + span_ms // 1000
                ) // (2 * (span_ms // 1000))
            else power_microjoules
        end
    )::bigint as energy
from (
    select
        node_name,
        gpu_index,
        part_id,
        epoch_us(sampled_at) // 3600000000 as hour,
        sum(interval_ms)::bigint as sampled_ms,
        sum((util_percent * 1000)::bigint * interval_ms)::bigint as busy_millipercent_ms,
        sum((power_watts * 1000)::bigint * interval_ms)::bigint as power_microjoules,
        min(energy_counter_mj) as counter_first,
        max(energy_counter_mj) as counter_last,
        (epoch_us(max(sampled_at)) - epoch_us(min(sampled_at))) // 1000 as span_ms
    from landed_gpu_samples
    group by node_name, gpu_index, part_id, epoch_us(sampled_at) // 3600000000
)
group by node_name, part_id, hour
"""

JOB_NODE_HOURS = f"""
select
    usage_date, payer, part_id, pool_id, node_name, hour::integer as hour, {SECONDS} as seconds,
    node_count = 1 or node_name = first_node as is_first_node,
    {each("{amount} * seconds // {unit} as {name}_seconds")},
    sampled_ms,
    busy_millipercent_ms,
    energy
from (select *, {HOURS} as hour from job_nodes left join first_nodes using (payer, pool_id))
left join gpu_hours using (node_name, part_id, hour)
"""

FIRST_NODES = "select payer, pool_id, min(node_name) as first_node from job_nodes where node_count > 1 group by all"

# Jobs too short for a sample share, with the idle GPUs, what their node drew beyond what samples name.
UNNAMED = """
with hours as (
    select distinct node_name, hour from job_node_hours where energy is null
),
drawn as (
    select node_name, hour, sum(energy)::bigint as energy
    from gpu_hours semi join hours using (node_name, hour)
    group by node_name, hour
),
held as (
    select
        usage_date, node_name, hour,
        sum(gpu_seconds)::bigint as gpu_seconds,
        coalesce(sum(energy), 0)::bigint as energy,
        sum(gpu_seconds) filter (energy is null)::bigint as unnamed
    from job_node_hours semi join hours using (node_name, hour)
    group by usage_date, node_name, hour
),
rests as (
    select
        node_name, hour,
        drawn.energy - held.energy as rest,
        unnamed + gpu_units // 25200 * 3600 - gpu_seconds as total
    from held
    inner join drawn using (node_name, hour)
    inner join nodes using (usage_date, node_name)
)
select payer, node_name, hour, part(rest, gpu_seconds, running, total) as energy
from (
    select *, sum(gpu_seconds) over (partition by node_name, hour order by job_key)::bigint as running
    from job_node_hours inner join (select payer, job_key from jobs) using (payer)
    where energy is null
)
inner join rests using (node_name, hour)
"""

USAGE = f"""
select
    usage_date, payer, pool_id, node_name, hour, seconds, is_first_node,
    {each("{name}_seconds")},
    (2 * busy_millipercent_ms * 10000 + sampled_ms) // (2 * sampled_ms) as busy_nano,
    least(coalesce((2 * sampled_ms * 1000000 + gpu_seconds) // (2 * gpu_seconds), 0), 1000000000) as coverage_nano,
    coalesce(job_node_hours.energy, unnamed.energy) as energy,
    (2 * coalesce(job_node_hours.energy, unnamed.energy) + 3600) // 7200 as kwh_nano
from job_node_hours
left join unnamed using (payer, node_name, hour)
"""

OF_JOBS = {
    "nodes": NODES,
    "jobs": JOBS,
    "job_nodes": JOB_NODES,
    "units": UNITS,
    "job_pools": JOB_POOLS,
    "job_hours": JOB_HOURS,
}
STEPS = OF_JOBS | {
    "gpu_hours": GPU_HOURS,
    "first_nodes": FIRST_NODES,
    "job_node_hours": JOB_NODE_HOURS,
    "unnamed": UNNAMED,
    "usage": USAGE,
}
DONE_WITH = ("job_nodes", "gpu_hours", "job_node_hours", "unnamed")
"""What only other steps of use read: memory is for the rest."""
