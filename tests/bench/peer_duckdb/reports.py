"""The reports. Those of a day are made with the day's facts; those of a month from the reports of its days."""

from __future__ import annotations

from tests.bench.peer_duckdb.arithmetic import COMPONENTS, each

_NONE = "0::decimal(18, 9)"
_MONTH = "date_trunc('month', usage_date)::date as month_date"
_NO_TRANSFERS = f"{_NONE} as burst_cost, {_NONE} as outcome_credit_cost, {_NONE} as adjustment_cost"

# ── what reports need of use and cost ────────────────────────────────────────────────────────────────
# A busy share times whole seconds is a whole number of 1e-9 seconds.
USED = """
select
    usage_date, payer, pool_id,
    sum(gpu_seconds)::bigint as gpu_seconds,
    sum(cpu_seconds)::bigint as cpu_seconds,
    sum(memory_seconds)::bigint as memory_seconds,
    sum(kwh_nano)::bigint as kwh_nano,
    coalesce(sum(gpu_seconds) filter (busy_nano is not null), 0)::bigint as sampled_seconds,
    sum(busy_nano * gpu_seconds)::bigint as busy_nano_seconds
from usage
group by usage_date, payer, pool_id
"""

# The method in force splits by what was held, and all work weighs the same: the third would change nothing.
METHODS = f"""
with jobs_of_hours as (
    select usage_date, hour, pool_id, team_id, sum(seconds)::bigint as seconds
    from job_hours
    inner join (select payer, team_id from jobs) using (payer)
    group by usage_date, hour, pool_id, team_id
),
running as (
    select
        *,
        sum(seconds) over (partition by hour, pool_id order by team_id rows unbounded preceding)::bigint as running,
        sum(seconds) over (partition by hour, pool_id)::bigint as total
    from jobs_of_hours
),
by_time as (
    select
        usage_date, team_id,
        {each("sum(part({name}_used_cost, seconds, running, total)) as {name}")}
    from running
    inner join pool_hours using (usage_date, hour, pool_id)
    group by usage_date, team_id
),
by_use as (
    select usage_date, team_id, sum(cpu_direct + gpu_direct + memory_direct) as direct from paid group by all
)
select usage_date, team_id, decimal_of(direct) as direct_cost, decimal_of(cpu + gpu + memory) as time_cost
from by_use
inner join by_time using (usage_date, team_id)
"""

STEPS = {"used": USED, "methods": METHODS}

# ── of days ──────────────────────────────────────────────────────────────────────────────────────────
JOB_RECEIPTS = f"""
select
    usage_date,
    {_MONTH},
    paid.job_key,
    job_id,
    job_name,
    'titan' as cluster_id,
    'unclassified' as workload_class,
    state,
    paid.team_id,
    coalesce(team_name, paid.team_id) as team_name,
    cost_centre,
    null::varchar as project_id,
    null::varchar as project_name,
    paid.user_name,
    pool_id,
    pool_name,
    gpu_model,
    'USD' as currency,
    {each("decimal_of({name}_direct) as {name}_cost")},
    {_NONE} as energy_cost,
    {_NONE} as other_direct_cost,
    decimal_of(cpu_idle + gpu_idle + memory_idle) as idle_cost,
    {_NO_TRANSFERS},
    decimal_of(cpu_direct + gpu_direct + memory_direct + cpu_idle + gpu_idle + memory_idle) as total_cost,
    case
        when sampled_seconds > 0
            then decimal_of(
                wide_share(
                    gpu_direct,
                    1000000000 * sampled_seconds - coalesce(busy_nano_seconds, 0),
                    1000000000 * sampled_seconds
                )
            )
    end as held_idle_cost,
    quotient(1000000000 * used.gpu_seconds, 3600) as gpu_hours,
    quotient(1000000000 * used.cpu_seconds, 3600) as core_hours,
    quotient(1000000000 * used.memory_seconds, 3600) as memory_gib_hours,
    decimal_of(kwh_nano) as energy_kwh,
    case when sampled_seconds > 0 then quotient(coalesce(busy_nano_seconds, 0), sampled_seconds) end as busy_share,
    start_at::timestamp as start_at,
    end_at::timestamp as end_at
from paid
inner join used using (usage_date, payer, pool_id)
inner join (select payer, job_id, job_name, state, start_at, end_at from jobs) using (payer)
left join teams using (team_id)
inner join (select pool_id, pool_name, gpu_model from pools) using (pool_id)
"""

_BY_COMPONENT = " union all ".join(
    f"""
    select
        usage_date, team_id, pool_id, '{name}' as component,
        sum({name}_direct)::bigint as direct,
        sum({name}_idle)::bigint as idle,
        0::bigint as shared
    from paid
    group by usage_date, team_id, pool_id
    """
    for name in COMPONENTS
)
TEAM_COSTS_DAILY = f"""
with costs as (
    {_BY_COMPONENT}
    union all
    select usage_date, team_id, pool_id, component, amount, 0, 0 from tagged
    union all
    select usage_date, team_id, pool_id, component, 0, 0, amount from overhead
),
gpu_use as (
    select
        usage_date, team_id, pool_id, 'gpu' as component,
        sum(used.gpu_seconds) as gpu_seconds,
        sum(sampled_seconds) as sampled_seconds,
        sum(busy_nano_seconds) as busy_nano_seconds
    from used
    inner join paid using (usage_date, payer, pool_id)
    group by usage_date, team_id, pool_id
)
select
    usage_date,
    {_MONTH},
    team_id,
    coalesce(team_name, team_id) as team_name,
    team_name as team_path,
    cost_centre,
    'chargeback' as billing_mode,
    null::varchar as project_id,
    null::varchar as project_name,
    pool_id,
    pool_name,
    cluster_id,
    gpu_model,
    purchase_class,
    component,
    'USD' as currency,
    decimal_of(direct) as direct_cost,
    decimal_of(idle) as idle_cost,
    decimal_of(shared) as shared_cost,
    {_NO_TRANSFERS},
    {_NONE} as unattributed_cost,
    {_NONE} as idle_down_cost,
    {_NONE} as idle_reserved_cost,
    {_NONE} as idle_stranded_cost,
    decimal_of(idle) as idle_unscheduled_cost,
    decimal_of(direct + idle + shared) as total_cost,
    quotient(1000000000 * gpu_seconds, 3600) as gpu_hours,
    quotient(1000000000 * sampled_seconds, 3600) as sampled_gpu_hours,
    quotient(busy_nano_seconds, 3600) as busy_gpu_hours,
    cost_status
from costs
inner join statuses using (usage_date, pool_id)
left join gpu_use using (usage_date, team_id, pool_id, component)
left join teams using (team_id)
inner join (select pool_id, pool_name, cluster_id, gpu_model, purchase_class from pools) using (pool_id)
"""

IDLE_DAILY = f"""
with days as (
    select
        usage_date, pool_id, component,
        sum(unscheduled_hours) as unscheduled_hours,
        sum(unscheduled_cost) as unscheduled_cost,
        sum(capacity_hours) as capacity_hours,
        sum(cost) as pool_cost
    from fct_pool_hours
    group by usage_date, pool_id, component
)
select
    usage_date,
    {_MONTH},
    pool_id,
    pool_name,
    cluster_id,
    gpu_model,
    purchase_class,
    component,
    'USD' as currency,
    idle_cause,
    if(idle_cause = 'unscheduled', unscheduled_hours, 0) as idle_hours,
    capacity_hours,
    decimal_of(
        wide_share(1000000000, (idle_hours * 1000000000)::hugeint, (capacity_hours * 1000000000)::hugeint)
    ) as idle_share,
    if(idle_cause = 'unscheduled', unscheduled_cost, 0) as idle_cost,
    pool_cost
from days
cross join unnest(['down', 'reserved', 'stranded', 'unscheduled']) as causes(idle_cause)
inner join (select pool_id, pool_name, cluster_id, gpu_model, purchase_class from pools) using (pool_id)
"""

DAILY = {
    "rpt_job_receipts": JOB_RECEIPTS,
    "rpt_team_costs_daily": TEAM_COSTS_DAILY,
    "methods": "from methods",
}

# ── of all days ──────────────────────────────────────────────────────────────────────────────────────
_SUMMED = (
    *(f"{kind}_cost" for kind in ("direct", "idle", "shared", "burst", "outcome_credit", "adjustment", "unattributed")),
    "total_cost",
    *("gpu_hours", "sampled_gpu_hours", "busy_gpu_hours"),
)
TEAM_COSTS_MONTHLY = f"""
select
    month_date, team_id, team_name, team_path, cost_centre, project_id, project_name, component, currency,
    {", ".join(f"sum({column}) as {column}" for column in _SUMMED)},
    count(distinct usage_date) as day_count,
    if(bool_and(cost_status = 'final'), 'final', 'provisional') as cost_status
from rpt_team_costs_daily
group by all
"""

METHOD_COMPARISON = f"""
select
    {_MONTH},
    team_id,
    coalesce(team_name, team_id) as team_name,
    'USD' as currency,
    sum(direct_cost) as charged_cost,
    charged_cost as direct_method_cost,
    sum(time_cost) as time_method_cost,
    charged_cost as complexity_method_cost,
    least(direct_method_cost, time_method_cost) as lowest_cost,
    greatest(direct_method_cost, time_method_cost) as highest_cost,
    highest_cost - lowest_cost as range_cost
from methods
left join teams using (team_id)
group by month_date, team_id, team_name
"""

READ_AGAIN = ("fct_pool_hours", "rpt_team_costs_daily", "methods")
MONTHLY = {
    "rpt_idle_daily": IDLE_DAILY,
    "rpt_team_costs_monthly": TEAM_COSTS_MONTHLY,
    "rpt_method_comparison": METHOD_COMPARISON,
}
