"""The whole pipeline as one hand-written DuckDB script for this company's policy alone: what an exact result must cost.

No policy engine, no history, no reasons; but the same samples, jobs and bill lines, and the same amounts to the last
digit. Amounts are integers of 1e-9, and each part is the difference of two neighbouring rounded running shares, so that
all parts together are the bill.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb

from tests.bench.floors import connect

DAYS_AT_ONCE = 7
"""A landed day needs no other day, so memory need not grow with the range."""


def run(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes `allocations` and `job_usage` as folders of Parquet files under `target`."""
    for name in ("allocations", "job_usage"):
        (target / name).mkdir(parents=True, exist_ok=True)
    for batch in _batches(days):
        with _connect(target) as con:
            _read(con, workspace_data / "landing", seeds, batch)
            _charge(con)
            _write(con, f"{target}/job_usage/{batch[0]}.parquet", JOB_USAGE)
            _write(con, f"{target}/allocations/{batch[0]}.parquet", ALLOCATIONS)


def _batches(days: list[date]) -> Iterator[list[date]]:
    for first in range(0, len(days), DAYS_AT_ONCE):
        yield days[first : first + DAYS_AT_ONCE]


def _connect(target: Path) -> duckdb.DuckDBPyConnection:
    con = connect(target)
    con.execute(SHARE)
    con.execute(WIDE_SHARE)
    con.execute(PART)
    return con


def _read(con: duckdb.DuckDBPyConnection, landing: Path, seeds: Path, days: list[date]) -> None:
    for table in ("gpu_samples", "jobs", "charges", "node_inventory"):
        files = [str(file) for day in days for file in sorted((landing / table).glob(f"date={day}/*.parquet"))]
        con.execute(f"create temp view landed_{table} as from read_parquet({files}, hive_partitioning = true)")
    for seed in ("policy/payer_rules", "reference/instance_types"):
        con.execute(f"create temp view {Path(seed).name} as from read_csv('{seeds / seed}.csv', all_varchar = true)")


def _charge(con: duckdb.DuckDBPyConnection) -> None:
    for table, query in TABLES.items():
        con.execute(f"create temp table {table} as {query}")


def _write(con: duckdb.DuckDBPyConnection, file: str, query: str) -> None:
    con.execute(f"copy ({query}) to '{file}' (format parquet)")


# ── the split ────────────────────────────────────────────────────────────────────────────────────────
WIDE_SHARE = """
create temp macro wide_share(amount, running, total) as
    sign(amount) * ((2 * abs(amount)::hugeint * running + total) // (2 * total::hugeint))
"""
"""amount × running ÷ total, rounded half away from zero."""

SHARE = """
create temp macro share(amount, running, total) as
    sign(amount) * (
        2 * abs(amount) // total * running // 2
        + (2 * abs(amount) // total * running % 2 * total + 2 * abs(amount) % total * running + total) // (2 * total)
    )
"""
"""The same in 64 bits, which is several times as fast: twice the amount is divided first, then its remainder. Good for
totals up to 3e9; beyond, DuckDB refuses to overflow."""

PART = """
create temp macro part(amount, weight, running, total) as
    share(amount, running, total) - share(amount, running - weight, total)
"""

# ── the steps ────────────────────────────────────────────────────────────────────────────────────────
RESOURCES = {"gpu": "gpu_units", "cpu": "cpu_millicores", "memory": "memory_mib"}
COMPONENTS = ("cpu", "gpu", "memory")
"""In the order in which a bill line is cut into them."""


def _each(template: str) -> str:
    return ", ".join(template.format(name=name, amount=RESOURCES[name]) for name in COMPONENTS)


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
    job_key,
    part_id,
    string_split(node_names, ',') as node_names,
    gpu_units,
    cpu_millicores,
    memory_mib,
    greatest(epoch_ms(start_at), epoch_ms(date)) // 1000 as start_s,
    least(epoch_ms(coalesce(end_at, as_of_at)), epoch_ms(date) + 86400000) // 1000 as end_s
from landed_jobs
left join payer_rules on landed_jobs.account = payer_rules.account
where end_s > start_s
"""

JOB_NODES = f"""
select
    usage_date, payer, part_id, job_key, start_s, end_s, pool_id, node_name,
    {_each("job.{amount} // node_count as {amount}")}
from (
    select * exclude (node_names), unnest(node_names) as node_name, len(node_names) as node_count from jobs
) as job
inner join nodes using (usage_date, node_name)
"""

# Weights are counted in the greatest unit that divides what any job holds: one GPU, the cores that come with it.
UNITS = f"""
select {_each("list_reduce(list(distinct {amount}), lambda one, other: gcd(one, other)) as {name}_unit")}
from job_nodes
"""

JOB_POOLS = f"""
select payer, usage_date, start_s, end_s, pool_id, {_each("sum({amount}) // any_value({name}_unit) as {name}")}
from job_nodes
cross join units
group by payer, usage_date, start_s, end_s, pool_id
"""

HOURS = "unnest(range(start_s // 3600, (end_s + 3599) // 3600))"
SECONDS = "(least(end_s, hour * 3600 + 3600) - greatest(start_s, hour * 3600))"

JOB_HOURS = f"""
select usage_date, hour::integer as hour, pool_id, payer, {_each(f"({{name}} * {SECONDS})::bigint as {{name}}")}
from (select *, {HOURS} as hour from job_pools)
"""

NODE_COSTS = f"""
select
    usage_date,
    (epoch_ms(charge_start_at) // 3600000)::integer as hour,
    pool_id,
    sum(wide_share(cost, cpu, total)) as cpu_cost,
    sum(wide_share(cost, cpu + gpu, total) - wide_share(cost, cpu, total)) as gpu_cost,
    sum(cost - wide_share(cost, cpu + gpu, total)) as memory_cost
from (
    select resource_id, date as usage_date, charge_start_at, (effective_cost * 1000000000)::hugeint as cost
    from landed_charges
)
inner join nodes using (usage_date, resource_id)
inner join (
    select instance_type, {_each("{name}_price_weight::bigint as {name}")}, cpu + gpu + memory as total
    from instance_types
    where instance_type = 'h100-8'
) as prices using (instance_type)
group by usage_date, hour, pool_id
"""

POOL_HOURS = f"""
with capacity as (
    select usage_date, pool_id, {_each("sum({amount}) * 3600 as {name}")}
    from nodes
    group by usage_date, pool_id
),
weights as (
    select hour, pool_id, {_each("sum({name})::bigint as {name}")} from job_hours group by hour, pool_id
)
select
    usage_date, hour, pool_id,
    {_each("weights.{name} as {name}_weight")},
    {_each("coalesce(weights.{name} * {name}_unit, 0) as {name}_held")},
    {_each("wide_share({name}_cost, {name}_held, capacity.{name})::bigint as {name}_used_cost")},
    {_each("({name}_cost - {name}_used_cost)::bigint as {name}_idle_cost")}
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
    {_each("sum({name})::bigint as {name}")},
    {_each("sum(part({name}_used_cost, {name}, {name}_running, {name}_weight))::bigint as {name}_direct")}
from (
    select *, {_each("(sum({name}::double) over payers)::bigint as {name}_running")}
    from job_hours
    window payers as (partition by hour, pool_id order by payer rows unbounded preceding)
)
inner join pool_hours using (usage_date, hour, pool_id)
group by usage_date, pool_id, payer
"""

IDLE = f"""
select
    usage_date, pool_id, payer,
    {_each("part({name}_idle_cost, {name}, {name}_running, {name}_total) as {name}_idle")}
from (
    select *, {_each("(sum({name}::double) over payers)::bigint as {name}_running")}
    from job_days
    window payers as (partition by usage_date, pool_id order by payer rows unbounded preceding)
)
inner join (
    select
        usage_date, pool_id,
        {_each("sum({name}_weight)::bigint as {name}_total")},
        {_each("sum({name}_idle_cost)::bigint as {name}_idle_cost")}
    from pool_hours
    group by usage_date, pool_id
) using (usage_date, pool_id)
"""

TAGGED = """
select usage_date, coalesce(team_id, 'unattributed') as team_id, sum(cost)::bigint as amount
from (
    select date as usage_date, 'team=' || (tags ->> 'team') as tag, (sum(effective_cost) * 1000000000)::hugeint as cost
    from landed_charges
    where service_name = 'Object Storage'
    group by date, tags
)
left join payer_rules using (tag)
group by usage_date, team_id
"""

OVERHEAD = """
with weights as (
    select usage_date, team_id, sum(amount) as weight
    from (
        select usage_date, team_id, amount from tagged
        union all
        select job_days.usage_date, team_id, cpu_direct + gpu_direct + memory_direct
        from job_days
        inner join jobs using (payer)
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
    usage_date, team_id, wide_share(cost, running, total) - wide_share(cost, running - weight, total) as amount
from running
inner join (
    select date as usage_date, (sum(effective_cost) * 1000000000)::hugeint as cost
    from landed_charges
    where service_name = 'Data Transfer'
    group by date
) using (usage_date)
"""

TABLES = {
    "nodes": NODES,
    "jobs": JOBS,
    "job_nodes": JOB_NODES,
    "units": UNITS,
    "job_pools": JOB_POOLS,
    "job_hours": JOB_HOURS,
    "node_costs": NODE_COSTS,
    "pool_hours": POOL_HOURS,
    "job_days": JOB_DAYS,
    "idle": IDLE,
    "tagged": TAGGED,
    "overhead": OVERHEAD,
}

# ── the results ──────────────────────────────────────────────────────────────────────────────────────
_BY_JOB = " union all ".join(
    f"select usage_date, pool_id, '{component}', team_id, job_key, '{kind}', {component}_{kind} from {table}"
    for kind, table in (("direct", "job_days_of_teams"), ("idle", "idle_of_teams"))
    for component in COMPONENTS
)

ALLOCATIONS = f"""
with job_days_of_teams as (
    select job_days.*, team_id, job_key from job_days inner join jobs using (payer)
),
idle_of_teams as (
    select idle.*, team_id, job_key from idle inner join jobs using (payer)
),
parts(usage_date, pool_id, component, team_id, job_key, allocation_kind, nano_units) as (
    {_BY_JOB}
    union all
    select usage_date, 'buckets', 'storage', team_id, null, 'direct', amount from tagged
    union all
    select usage_date, 'network', 'network', team_id, null, 'overhead', amount from overhead
)
select
    * exclude (nano_units),
    (nano_units::decimal(38, 0) * 0.000000001)::decimal(38, 9) as amount
from parts
"""

JOB_USAGE = f"""
select
    usage_date,
    make_timestamp(hour * 3600000000) as hour_at,
    node_name,
    job_key,
    gpu_units // 25200 * {SECONDS} * 1000 as gpu_held_ms,
    busy_sampled_ms,
    busy_millipercent_ms,
    energy_microjoules
from (select *, {HOURS} as hour from job_nodes)
left join (
    select
        node_name,
        part_id,
        epoch_us(sampled_at) // 3600000000 as hour,
        sum(interval_ms)::bigint as busy_sampled_ms,
        sum((util_percent * 1000)::bigint * interval_ms)::bigint as busy_millipercent_ms,
        sum((power_watts * 1000)::bigint * interval_ms)::bigint as energy_microjoules
    from landed_gpu_samples
    group by node_name, part_id, epoch_us(sampled_at) // 3600000000
) as sampled using (node_name, part_id, hour)
"""
