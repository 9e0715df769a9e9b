"""The pipeline as an honest pandas script for this company's policy alone: what most people would write first.

Vectorised merges and groups, everything in memory, money in floating point: near the exact result, but the parts add up
to the bill only nearly.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
UNITS_PER_GPU = 25_200
RESOURCES = {"gpu": "gpu_units", "cpu": "cpu_millicores", "memory": "memory_mib"}
COMPONENTS = list(RESOURCES)
POOL_HOUR = ["usage_date", "pool_id", "hour"]


def run(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes `allocations` and `job_usage` as folders of Parquet files under `target`."""
    landing = workspace_data / "landing"
    nodes, jobs, charges = _nodes(landing, days), _jobs(landing, seeds, days), _charges(landing, days)
    job_node_hours = _job_node_hours(jobs, nodes)
    _write(_job_usage(job_node_hours, _roll_up(landing, days)), target / "job_usage")

    pool_job_hours = job_node_hours.groupby([*POOL_HOUR, "team_id", "job_key"], as_index=False)[COMPONENTS].sum()
    pool_hours = _pool_hours(_node_costs(charges, nodes, _price_weights(seeds)), pool_job_hours, nodes)
    direct = _direct(pool_job_hours, pool_hours)
    idle = _idle(pool_job_hours, pool_hours)
    tagged = _tagged(charges, seeds)
    overhead = _overhead(charges, direct, tagged)
    _write(pd.concat([direct, idle, tagged, overhead], ignore_index=True), target / "allocations")


def _write(table: pd.DataFrame, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "all.parquet", index=False)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────
def _read(landing: Path, table: str, days: list[date], columns: list[str]) -> pd.DataFrame:
    parts = [
        pd.read_parquet(file, columns=columns).assign(usage_date=day)
        for day in days
        for file in sorted((landing / table).glob(f"date={day}/*.parquet"))
    ]
    return pd.concat(parts, ignore_index=True)


def _milliseconds(times: pd.Series) -> pd.Series:
    return times.dt.tz_localize(None).astype("datetime64[ms]").astype("int64")


def _nodes(landing: Path, days: list[date]) -> pd.DataFrame:
    columns = ["node_name", "resource_id", "pool_id", *RESOURCES.values()]
    return _read(landing, "node_inventory", days, columns)


def _jobs(landing: Path, seeds: Path, days: list[date]) -> pd.DataFrame:
    columns = ["job_key", "part_id", "account", "start_at", "end_at", "as_of_at", "node_names", *RESOURCES.values()]
    jobs = _read(landing, "jobs", days, columns)
    jobs["team_id"] = jobs["account"].map(_teams(seeds, "account")).fillna("unattributed")
    day_ms = pd.to_datetime(jobs["usage_date"]).astype("datetime64[ms]").astype("int64")
    ended = jobs["end_at"].fillna(jobs["as_of_at"])
    jobs["start_ms"] = np.maximum(_milliseconds(jobs["start_at"]), day_ms)
    jobs["end_ms"] = np.minimum(_milliseconds(ended), day_ms + DAY_MS)
    return jobs[jobs["end_ms"] > jobs["start_ms"]]


def _charges(landing: Path, days: list[date]) -> pd.DataFrame:
    columns = ["resource_id", "service_name", "tags", "charge_start_at", "effective_cost"]
    charges = _read(landing, "charges", days, columns)
    charges["cost"] = charges["effective_cost"].astype(float)
    charges["hour"] = _milliseconds(charges["charge_start_at"]) // HOUR_MS
    return charges


def _teams(seeds: Path, named_by: str) -> pd.Series:
    rules = pd.read_csv(seeds / "policy" / "payer_rules.csv").dropna(subset=named_by)
    return rules.set_index(named_by)["team_id"]


def _price_weights(seeds: Path) -> dict[str, float]:
    types = pd.read_csv(seeds / "reference" / "instance_types.csv").set_index("instance_type")
    weights = types.loc["h100-8", [f"{component}_price_weight" for component in COMPONENTS]].astype(float)
    return dict(zip(COMPONENTS, weights / weights.sum(), strict=True))


# ── use ──────────────────────────────────────────────────────────────────────────────────────────────
def _roll_up(landing: Path, days: list[date]) -> pd.DataFrame:
    columns = ["node_name", "part_id", "sampled_at", "interval_ms", "util_percent", "power_watts"]
    samples = _read(landing, "gpu_samples", days, columns).dropna(subset="part_id")
    samples["hour"] = _milliseconds(samples["sampled_at"]) // HOUR_MS
    samples["busy_millipercent_ms"] = (samples["util_percent"] * 1000).round().astype("int64") * samples["interval_ms"]
    samples["energy_microjoules"] = (samples["power_watts"] * 1000).round().astype("int64") * samples["interval_ms"]
    measures = ["interval_ms", "busy_millipercent_ms", "energy_microjoules"]
    summed = samples.groupby(["node_name", "part_id", "hour"], as_index=False)[measures].sum()
    return summed.rename(columns={"interval_ms": "busy_sampled_ms"})


def _job_node_hours(jobs: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    split = jobs.assign(node_name=jobs["node_names"].str.split(","))
    split["node_count"] = split["node_name"].str.len()
    on_nodes = split.explode("node_name").merge(
        nodes[["usage_date", "node_name", "pool_id"]], on=["usage_date", "node_name"]
    )
    first = on_nodes["start_ms"] // HOUR_MS
    count = (on_nodes["end_ms"] - 1) // HOUR_MS - first + 1
    hours = on_nodes.loc[on_nodes.index.repeat(count)]
    hours = hours.assign(hour=first.repeat(count) + hours.groupby(level=0).cumcount())
    held_ms = np.minimum(hours["end_ms"], (hours["hour"] + 1) * HOUR_MS) - np.maximum(
        hours["start_ms"], hours["hour"] * HOUR_MS
    )
    for component, amount in RESOURCES.items():
        hours[component] = hours[amount] // hours["node_count"] * held_ms
    return hours[[*POOL_HOUR, "node_name", "team_id", "job_key", "part_id", *COMPONENTS]]


def _job_usage(job_node_hours: pd.DataFrame, samples: pd.DataFrame) -> pd.DataFrame:
    usage = job_node_hours.merge(samples, on=["node_name", "part_id", "hour"], how="left")
    usage["hour_at"] = pd.to_datetime(usage["hour"] * HOUR_MS, unit="ms")
    usage["gpu_held_ms"] = usage["gpu"] // UNITS_PER_GPU
    measures = ["busy_sampled_ms", "busy_millipercent_ms", "energy_microjoules"]
    return usage[["usage_date", "hour_at", "node_name", "job_key", "gpu_held_ms", *measures]]


# ── cost ─────────────────────────────────────────────────────────────────────────────────────────────
def _long(table: pd.DataFrame, keys: list[str], value: str) -> pd.DataFrame:
    return table.melt(id_vars=keys, value_vars=COMPONENTS, var_name="component", value_name=value)


def _node_costs(charges: pd.DataFrame, nodes: pd.DataFrame, prices: dict[str, float]) -> pd.DataFrame:
    lines = charges.merge(nodes[["usage_date", "resource_id", "pool_id"]], on=["usage_date", "resource_id"])
    costs = lines.groupby(POOL_HOUR, as_index=False)["cost"].sum()
    cut = costs[POOL_HOUR].assign(**{name: costs["cost"] * price for name, price in prices.items()})
    return _long(cut, POOL_HOUR, "cost")


def _pool_hours(costs: pd.DataFrame, pool_job_hours: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    """What each hour of a pool cost, used and idle."""
    held = _long(pool_job_hours.groupby(POOL_HOUR, as_index=False)[COMPONENTS].sum(), POOL_HOUR, "held")
    sizes = nodes.rename(columns={amount: name for name, amount in RESOURCES.items()})
    pool_day = ["usage_date", "pool_id"]
    capacity = _long(sizes.groupby(pool_day, as_index=False)[COMPONENTS].sum(), pool_day, "capacity")
    hours = costs.merge(capacity, on=[*pool_day, "component"]).merge(held, on=[*POOL_HOUR, "component"], how="left")
    hours["held"] = hours["held"].fillna(0)
    hours["used_cost"] = hours["cost"] * hours["held"] / (hours["capacity"] * HOUR_MS)
    hours["idle_cost"] = hours["cost"] - hours["used_cost"]
    return hours


def _direct(pool_job_hours: pd.DataFrame, pool_hours: pd.DataFrame) -> pd.DataFrame:
    weights = _long(pool_job_hours, [*POOL_HOUR, "team_id", "job_key"], "weight")
    parts = weights.merge(pool_hours, on=[*POOL_HOUR, "component"])
    parts["amount"] = parts["used_cost"] * parts["weight"] / parts["held"]
    payer = ["usage_date", "pool_id", "component", "team_id", "job_key"]
    return parts.groupby(payer, as_index=False)["amount"].sum().assign(allocation_kind="direct")


def _idle(pool_job_hours: pd.DataFrame, pool_hours: pd.DataFrame) -> pd.DataFrame:
    """The idle cost of a pool's day, in proportion to use of the day."""
    payer = ["usage_date", "pool_id", "team_id", "job_key"]
    weights = _long(pool_job_hours.groupby(payer, as_index=False)[COMPONENTS].sum(), payer, "weight")
    pool_day = ["usage_date", "pool_id", "component"]
    days = pool_hours.groupby(pool_day, as_index=False)[["idle_cost", "held"]].sum()
    parts = weights.merge(days, on=pool_day)
    parts["amount"] = parts["idle_cost"] * parts["weight"] / parts["held"]
    return parts[[*payer, "component", "amount"]].assign(allocation_kind="idle")


def _tagged(charges: pd.DataFrame, seeds: Path) -> pd.DataFrame:
    lines = charges[charges["service_name"] == "Object Storage"]
    tags = "team=" + lines["tags"].str.extract(r'"team": *"([^"]*)"', expand=False)
    owned = lines.assign(team_id=tags.map(_teams(seeds, "tag")).fillna("unattributed"))
    amounts = owned.groupby(["usage_date", "team_id"], as_index=False)["cost"].sum().rename(columns={"cost": "amount"})
    return amounts.assign(pool_id="buckets", component="storage", allocation_kind="direct")


def _overhead(charges: pd.DataFrame, direct: pd.DataFrame, tagged: pd.DataFrame) -> pd.DataFrame:
    """What belongs to nobody, by what each team pays directly on the day."""
    weights = pd.concat([direct, tagged]).groupby(["usage_date", "team_id"], as_index=False)["amount"].sum()
    lines = charges[charges["service_name"] == "Data Transfer"]
    parts = weights.merge(lines.groupby("usage_date", as_index=False)["cost"].sum(), on="usage_date")
    parts["amount"] *= parts["cost"] / parts.groupby("usage_date")["amount"].transform("sum")
    shared = parts[["usage_date", "team_id", "amount"]]
    return shared.assign(pool_id="network", component="network", allocation_kind="overhead")
