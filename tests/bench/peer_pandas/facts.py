"""The facts, with the columns that this company's policy fills."""

from __future__ import annotations

import pandas as pd

from tests.bench.peer_pandas.costs import POOL_DAY
from tests.bench.peer_pandas.reading import COMPONENTS, HOUR_MS, UNITS

DRIVERS = {"gpu": "gpu_seconds", "cpu": "cpu_core_seconds", "memory": "memory_gib_seconds"}
ALLOCATION_POLICY = "allocation_policies/*/*@2025-01-01"
IDLE_POLICY = "idle_policies/*/*@2025-01-01"


def _status(is_final: pd.Series) -> pd.Series:
    return is_final.map({True: "final", False: "provisional"})


def _instant(hours: pd.Series) -> pd.Series:
    return pd.to_datetime(hours * HOUR_MS, unit="ms")


def billed_costs(lines: pd.DataFrame) -> pd.DataFrame:
    table = lines.assign(
        allocatable_cost=lines["effective_cost"],
        cost_status=_status(lines["is_final"]),
        billing_period_date=lines["billing_period_start_at"].dt.date,
        owner_project_id=None,
        commitment_fee_key=None,
        spread_start_at=lines["charge_start_at"].dt.tz_localize(None),
        spread_end_at=lines["charge_end_at"].dt.tz_localize(None),
    ).rename(columns={"source": "source_name"})
    unused = ["billing_period_start_at", "charge_start_at", "charge_end_at", "is_final", "hour", "rule_pool_id"]
    return table.drop(columns=unused)


def job_usage_hourly(usage: pd.DataFrame) -> pd.DataFrame:
    table = usage.assign(
        hour_at=_instant(usage["hour"]),
        cluster_id="titan",
        project_id=None,
        workload_class="unclassified",
        class_weight=1,
    )
    names = {name: f"{name}_weight" for name in COMPONENTS}
    names |= {"cpu_seconds": "cpu_core_seconds", "memory_seconds": "memory_gib_seconds"}
    return table.rename(columns=names).drop(columns=["hour", "part_id", "sampled_ms", "busy_percent_ms", "millijoules"])


def pool_hours(pool_hours: pd.DataFrame) -> pd.DataFrame:
    unit = pool_hours["component"].map(UNITS) * HOUR_MS
    table = pool_hours.assign(
        hour_at=_instant(pool_hours["hour"]),
        currency="USD",
        capacity_hours=pool_hours["capacity"] / unit,
        used_hours=pool_hours["held"] / unit,
        unscheduled_hours=(pool_hours["capacity"] - pool_hours["held"]) / unit,
        rate=pool_hours["cost"] * unit / pool_hours["capacity"],
        method="direct",
        allocation_policy_row=ALLOCATION_POLICY,
        idle_policy_rows=", ".join([IDLE_POLICY] * 4),
        **{f"{cause}_{what}": 0.0 for cause in ("down", "reserved", "stranded") for what in ("hours", "cost")},
    )
    return table.rename(columns={"idle_cost": "unscheduled_cost"}).drop(columns=["hour", "capacity", "held"])


def cost_allocations(
    direct: pd.DataFrame, idle: pd.DataFrame, tagged: pd.DataFrame, shared: pd.DataFrame, lines: pd.DataFrame
) -> pd.DataFrame:
    parts = [
        direct.assign(
            allocation_kind="direct",
            driver=direct["component"].map(DRIVERS),
            driver_quantity=direct["quantity"] / (direct["component"].map(UNITS) * 1000),
            reason="in proportion to use",
            policy_row=ALLOCATION_POLICY,
        ).drop(columns="quantity"),
        idle.assign(
            allocation_kind="idle", idle_cause="unscheduled", reason="in proportion to use", policy_row=IDLE_POLICY
        ),
        tagged.assign(allocation_kind="direct", reason="the bill names the owner", policy_row=ALLOCATION_POLICY),
        shared.assign(allocation_kind="shared", reason="overhead by direct_cost", policy_row=ALLOCATION_POLICY),
    ]
    allocations = pd.concat(parts, ignore_index=True).assign(
        currency="USD", project_id=None, method="direct", counterparty_team_id=None
    )
    is_final = lines.groupby([*POOL_DAY, "component"], as_index=False)["is_final"].all()
    is_final = is_final.assign(cost_status=_status(is_final["is_final"])).drop(columns="is_final")
    return allocations.merge(is_final, on=[*POOL_DAY, "component"])


def job_days(jobs: pd.DataFrame) -> pd.DataFrame:
    table = jobs.assign(
        project_id=None,
        workload_class="unclassified",
        workload_rule=None,
        is_class_self_declared=False,
        checkpoint_interval_seconds=None,
        part_count=1,
        is_request_missing=jobs["cpu_millicores"].isna() | jobs["memory_mib"].isna(),
        gpus=jobs["gpu_units"] / UNITS["gpu"],
        **{name: jobs[name].dt.tz_localize(None) for name in ("submit_at", "start_at", "end_at")},
    ).rename(columns={"partition": "partition_name"})
    unused = ["part_id", "node_names", "gpu_units", "cpu_millicores", "memory_mib", "as_of_at", "start_ms", "end_ms"]
    return table.drop(columns=unused)
