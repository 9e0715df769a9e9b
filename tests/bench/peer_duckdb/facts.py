"""The facts, with the columns that this company's policy fills; what is the same in all rows is written as such."""

from __future__ import annotations

from tests.bench.peer_duckdb.arithmetic import COMPONENTS, UNITS, each
from tests.bench.peer_duckdb.costs import cut

_LINE = """
    currency,
    if(is_final, 'final', 'provisional') as cost_status,
    source as source_name,
    provider,
    invoice_id,
    billing_period_start_at::date as billing_period_date,
    charge_category,
    charge_description,
    service_name,
    resource_id,
    tags,
    {owner} as owner_team_id,
    null::varchar as owner_project_id,
    cost_rule,
    null::varchar as commitment_fee_key,
    billed_cost::decimal(18, 9) as line_billed_cost,
    charge_start_at::timestamp as spread_start_at,
    charge_end_at::timestamp as spread_end_at
"""
_CUT = " union all ".join(
    f"""
    select
        usage_date, charge_key, pool_id, '{name}' as component,
        decimal_of({cut("list_cost", name)}) as list_cost,
        decimal_of({cut("billed_cost", name)}) as billed_cost,
        decimal_of({cut("effective_cost", name)}) as effective_cost,
        decimal_of({cut("effective_cost", name)}) as allocatable_cost,
        {_LINE.format(owner="null")}
    from lines
    where component = 'node'
    """
    for name in COMPONENTS
)
BILLED_COSTS = f"""
select
    usage_date, charge_key, pool_id, component,
    list_cost::decimal(18, 9) as list_cost,
    billed_cost::decimal(18, 9) as billed_cost,
    effective_cost::decimal(18, 9) as effective_cost,
    effective_cost::decimal(18, 9) as allocatable_cost,
    {_LINE.format(owner="case when component = 'storage' then team_id end")}
from lines
left join owners using (tags)
where component <> 'node'
union all
{_CUT}
"""

JOB_USAGE_HOURLY = f"""
select
    usage_date,
    make_timestamp(hour * 3600000000) as hour_at,
    job_key,
    'titan' as cluster_id,
    node_name,
    pool_id,
    team_id,
    null::varchar as project_id,
    user_name,
    seconds as held_seconds,
    if(is_first_node, seconds, 0) as present_seconds,
    gpu_seconds,
    cpu_seconds as cpu_core_seconds,
    memory_seconds as memory_gib_seconds,
    'unclassified' as workload_class,
    1 as class_weight,
    {each("{name}_seconds * {unit} * 1000 as {name}_weight")},
    energy as energy_weight,
    decimal_of(busy_nano) as busy_share,
    decimal_of(coverage_nano) as telemetry_coverage_share,
    decimal_of(kwh_nano) as energy_kwh
from usage
inner join (select payer, job_key, team_id, user_name from jobs) using (payer)
"""

_POOL_HOURS = " union all ".join(
    f"""
    select
        usage_date, hour, pool_id, '{name}' as component,
        {name}_cost as cost,
        {name}_capacity::hugeint as capacity,
        {name}_held::hugeint as held,
        {name}_used_cost as used_cost,
        {name}_idle_cost as idle_cost,
        {unit * 3600}::hugeint as unit
    from pool_hours
    """
    for name, unit in UNITS.items()
)
_NONE = "0::decimal(18, 9)"
POOL_HOURS = f"""
select
    usage_date,
    make_timestamp(hour::bigint * 3600000000) as hour_at,
    pool_id,
    component,
    'USD' as currency,
    decimal_of(cost) as cost,
    quotient(1000000000 * capacity, unit) as capacity_hours,
    quotient(1000000000 * held, unit) as used_hours,
    {_NONE} as down_hours,
    {_NONE} as reserved_hours,
    {_NONE} as stranded_hours,
    quotient(1000000000 * (capacity - held), unit) as unscheduled_hours,
    decimal_of(used_cost) as used_cost,
    {_NONE} as down_cost,
    {_NONE} as reserved_cost,
    {_NONE} as stranded_cost,
    decimal_of(idle_cost) as unscheduled_cost,
    decimal_of(wide_share(cost, unit, capacity)) as rate,
    'direct' as method,
    'allocation_policies/*/*@2025-01-01' as allocation_policy_row,
    concat_ws(', ', idle_row, idle_row, idle_row, idle_row) as idle_policy_rows
from ({_POOL_HOURS})
cross join (select 'idle_policies/*/*@2025-01-01' as idle_row)
"""

_DRIVERS = {"cpu": "cpu_core_seconds", "gpu": "gpu_seconds", "memory": "memory_gib_seconds"}
_OF_JOBS = " union all ".join(
    f"""
    select
        usage_date, pool_id, '{name}' as component, team_id, user_name, job_key,
        '{kind}' as allocation_kind,
        {cause} as idle_cause,
        {name}_{kind} as amount,
        {driver} as driver,
        {quantity} as driver_quantity,
        'in proportion to use' as reason,
        '{row}' as policy_row,
        cost_status
    from paid
    where {rows}
    """
    for name in COMPONENTS
    for kind, cause, driver, quantity, row, rows in (
        ("direct", "null", f"'{_DRIVERS[name]}'", f"{name}_seconds", "allocation_policies/*/*@2025-01-01", "true"),
        ("idle", "'unscheduled'", "null", "null", "idle_policies/*/*@2025-01-01", f"has_{name}_idle"),
    )
)
_OF_TEAMS = " union all ".join(
    f"""
    select
        usage_date, pool_id, component, team_id, null, null, '{kind}', null, amount, null, null, '{reason}',
        'allocation_policies/*/*@2025-01-01', cost_status
    from {table}
    inner join statuses using (usage_date, pool_id)
    """
    for table, kind, reason in (
        ("tagged", "direct", "the bill names the owner"),
        ("overhead", "shared", "overhead by direct_cost"),
    )
)
COST_ALLOCATIONS = f"""
select
    usage_date,
    pool_id,
    component,
    'USD' as currency,
    team_id,
    null::varchar as project_id,
    user_name,
    job_key,
    allocation_kind,
    idle_cause,
    decimal_of(amount) as amount,
    driver,
    driver_quantity,
    'direct' as method,
    reason,
    policy_row,
    null::varchar as counterparty_team_id,
    cost_status
from ({_OF_JOBS} union all {_OF_TEAMS})
"""

AMOUNTS = f"""
select usage_date, pool_id, component, team_id, job_key, allocation_kind, decimal_of(amount) as amount
from ({_OF_JOBS} union all {_OF_TEAMS})
"""

JOB_DAYS = """
select
    date as usage_date,
    job_key,
    job_id,
    array_job_id,
    landed_jobs.cluster_id,
    scheduler,
    coalesce(team_id, 'unattributed') as team_id,
    null::varchar as project_id,
    landed_jobs.user_name,
    landed_jobs.account,
    landed_jobs.namespace,
    partition as partition_name,
    qos,
    job_name,
    state,
    exit_code,
    policy_row('payer_rules', rule_order, valid_from) as payer_rule,
    'unclassified' as workload_class,
    null::varchar as workload_rule,
    false as is_class_self_declared,
    submit_at::timestamp as submit_at,
    start_at::timestamp as start_at,
    coalesce(end_at, as_of_at)::timestamp as end_at,
    null::bigint as checkpoint_interval_seconds,
    1 as part_count,
    end_at is null as is_running,
    cpu_millicores is null or memory_mib is null as is_request_missing,
    gpu_units // 25200 as gpus
from landed_jobs
left join payer_rules on landed_jobs.account = payer_rules.account
"""

TABLES = {
    "fct_billed_costs": BILLED_COSTS,
    "fct_job_usage_hourly": JOB_USAGE_HOURLY,
    "fct_pool_hours": POOL_HOURS,
    "fct_cost_allocations": COST_ALLOCATIONS,
    "fct_job_days": JOB_DAYS,
}
