"""The reports, from the facts."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.bench.peer_pandas.costs import POOL_DAY, POOL_HOUR
from tests.bench.peer_pandas.reading import COMPONENTS, HOUR_MS, UNITS, month

KINDS = ["direct", "idle", "shared", "burst", "outcome_credit", "adjustment", "unattributed"]
CAUSES = ["down", "reserved", "stranded", "unscheduled"]


def _wide(allocations: pd.DataFrame, keys: list[str], by: str, columns: list[str]) -> pd.DataFrame:
    """Amounts of each kind beside each other; kinds that there are none of cost nothing."""
    amounts = allocations.pivot_table(index=keys, columns=by, values="amount", aggfunc="sum", fill_value=0.0)
    return amounts.reindex(columns=columns, fill_value=0.0).add_suffix("_cost")


def _used(usage: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """What was held, how much of it telemetry knows of, and how much of that was busy."""
    busy = usage.assign(
        sampled_seconds=usage["gpu_seconds"].where(usage["busy_share"].notna(), 0),
        busy_seconds=usage["busy_share"] * usage["gpu_seconds"],
    )
    measures = [*(f"{name}_seconds" for name in COMPONENTS), "energy_kwh", "sampled_seconds", "busy_seconds"]
    return busy.groupby(keys, as_index=False)[measures].sum()


def team_costs_daily(
    allocations: pd.DataFrame, usage: pd.DataFrame, teams: pd.DataFrame, pools: pd.DataFrame
) -> pd.DataFrame:
    keys = [*POOL_DAY, "component", "team_id"]
    costs = _wide(allocations, keys, "allocation_kind", KINDS)
    causes = _wide(allocations, keys, "idle_cause", CAUSES).add_prefix("idle_")
    groups = allocations.groupby(keys)
    all_final = allocations["cost_status"].eq("final").groupby([allocations[key] for key in keys]).all()
    costs = costs.assign(total_cost=groups["amount"].sum(), cost_status=np.where(all_final, "final", "provisional"))
    costs = costs.join(causes).reset_index()
    idle = [f"idle_{cause}_cost" for cause in CAUSES]
    costs[idle] = costs[idle].fillna(0.0)
    used = _used(usage, [*POOL_DAY, "team_id"]).assign(component="gpu")
    for name, seconds in (("gpu", "gpu_seconds"), ("sampled_gpu", "sampled_seconds"), ("busy_gpu", "busy_seconds")):
        used[f"{name}_hours"] = used[seconds] / 3600
    hours = used[[*keys, "gpu_hours", "sampled_gpu_hours", "busy_gpu_hours"]]
    table = costs.merge(hours, on=keys, how="left").merge(teams, on="team_id", how="left").merge(pools, on="pool_id")
    return table.assign(
        month_date=month(table["usage_date"]),
        team_name=table["team_name"].fillna(table["team_id"]),
        team_path=table["team_name"],
        billing_mode="chargeback",
        project_id=None,
        project_name=None,
        currency="USD",
    )


def job_receipts(
    allocations: pd.DataFrame, usage: pd.DataFrame, jobs: pd.DataFrame, teams: pd.DataFrame, pools: pd.DataFrame
) -> pd.DataFrame:
    keys = [*POOL_DAY, "job_key"]
    of_jobs = allocations[allocations["job_key"].notna()]
    is_direct = of_jobs["allocation_kind"] == "direct"
    costs = _wide(of_jobs[is_direct], keys, "component", COMPONENTS)
    costs = costs.assign(
        idle_cost=of_jobs[~is_direct].groupby(keys)["amount"].sum(), total_cost=of_jobs.groupby(keys)["amount"].sum()
    ).reset_index()
    described = ["job_id", "job_name", "cluster_id", "state", "team_id", "user_name", "start_at", "end_at"]
    table = (
        costs.merge(_used(usage, keys), on=keys)
        .merge(jobs[["usage_date", "job_key", *described]], on=["usage_date", "job_key"])
        .merge(teams, on="team_id", how="left")
        .merge(pools[["pool_id", "pool_name", "gpu_model"]], on="pool_id")
    )
    table["busy_share"] = table["busy_seconds"] / table["sampled_seconds"]
    table = table.assign(
        month_date=month(table["usage_date"]),
        workload_class="unclassified",
        team_name=table["team_name"].fillna(table["team_id"]),
        project_id=None,
        project_name=None,
        currency="USD",
        held_idle_cost=table["gpu_cost"] * (1 - table["busy_share"]),
        gpu_hours=table["gpu_seconds"] / 3600,
        core_hours=table["cpu_seconds"] / 3600,
        memory_gib_hours=table["memory_seconds"] / 3600,
        start_at=table["start_at"].dt.tz_localize(None),
        end_at=table["end_at"].dt.tz_localize(None),
        **{f"{kind}_cost": 0.0 for kind in ("energy", "other_direct", "burst", "outcome_credit", "adjustment")},
    )
    return table.drop(columns=[name for name in table if name.endswith("_seconds")])


def idle_daily(pool_hours: pd.DataFrame, pools: pd.DataFrame) -> pd.DataFrame:
    keys = [*POOL_DAY, "component"]
    days = pool_hours.groupby(keys, as_index=False)[["cost", "capacity", "held", "idle_cost"]].sum()
    unit = days["component"].map(UNITS) * HOUR_MS
    days["capacity_hours"] = days["capacity"] / unit
    days["idle_hours"] = (days["capacity"] - days["held"]) / unit
    table = days.merge(pd.DataFrame({"idle_cause": CAUSES}), how="cross").merge(pools, on="pool_id")
    is_idle = table["idle_cause"] == "unscheduled"
    table[["idle_hours", "idle_cost"]] = table[["idle_hours", "idle_cost"]].where(is_idle, 0.0)
    table = table.assign(
        month_date=month(table["usage_date"]), currency="USD", idle_share=table["idle_hours"] / table["capacity_hours"]
    )
    return table.rename(columns={"cost": "pool_cost"}).drop(columns=["capacity", "held"])


def team_costs_monthly(daily: pd.DataFrame) -> pd.DataFrame:
    keys = ["month_date", "team_id", "team_name", "team_path", "cost_centre", "component", "currency"]
    amounts = [f"{kind}_cost" for kind in KINDS] + ["total_cost"]
    hours = ["gpu_hours", "sampled_gpu_hours", "busy_gpu_hours"]
    groups = daily.groupby(keys)
    months = groups[amounts].sum().join(groups[hours].sum(min_count=1))
    months["day_count"] = groups["usage_date"].nunique()
    is_provisional = groups["cost_status"].max() == "provisional"
    months["cost_status"] = np.where(is_provisional, "provisional", "final")
    return months.reset_index().assign(project_id=None, project_name=None)


def method_comparison(pool_job_hours: pd.DataFrame, pool_hours: pd.DataFrame, teams: pd.DataFrame) -> pd.DataFrame:
    """All work weighs the same, so weights of classes change nothing; time does."""
    keys = [*POOL_HOUR, "team_id"]
    weights = pool_job_hours.groupby(keys, as_index=False)[[*COMPONENTS, "present_seconds"]].sum()
    long = weights.melt([*keys, "present_seconds"], COMPONENTS, var_name="component", value_name="weight")
    parts = long.merge(pool_hours, on=[*POOL_HOUR, "component"])
    present = parts.groupby([*POOL_HOUR, "component"])["present_seconds"].transform("sum")
    parts["charged_cost"] = parts["used_cost"] * parts["weight"] / parts["held"]
    parts["time_method_cost"] = parts["used_cost"] * parts["present_seconds"] / present
    parts["month_date"] = month(parts["usage_date"])
    months = parts.groupby(["month_date", "team_id"], as_index=False)[["charged_cost", "time_method_cost"]].sum()
    months["direct_method_cost"] = months["complexity_method_cost"] = months["charged_cost"]
    months["lowest_cost"] = months[["charged_cost", "time_method_cost"]].min(axis=1)
    months["highest_cost"] = months[["charged_cost", "time_method_cost"]].max(axis=1)
    months["range_cost"] = months["highest_cost"] - months["lowest_cost"]
    months = months.merge(teams[["team_id", "team_name"]], on="team_id", how="left")
    return months.assign(team_name=months["team_name"].fillna(months["team_id"]), currency="USD")
