"""What jobs held, and what telemetry says of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

from tests.bench.peer_pandas.reading import COMPONENTS, HOUR_MS, RESOURCES, UNITS, landed, milliseconds

NODE_HOUR = ["node_name", "hour"]


def gpu_hours(landing: Path, days: list[date]) -> pd.DataFrame:
    """By node, hour and job: what the samples add up to. Energy is what the counter added, or power times time."""
    columns = ["node_name", "gpu_index", "part_id", "sampled_at", "interval_ms", "util_percent", "power_watts"]
    samples = landed(landing, "gpu_samples", days, [*columns, "energy_counter_mj"])
    samples["sampled_ms"] = milliseconds(samples["sampled_at"])
    samples["hour"] = samples["sampled_ms"] // HOUR_MS
    samples["busy_percent_ms"] = samples["util_percent"] * samples["interval_ms"]
    samples["power_millijoules"] = (samples["power_watts"] * 1000).round() * samples["interval_ms"] / 1000
    gpus = samples.groupby(["node_name", "gpu_index", "part_id", "hour"], as_index=False, dropna=False).agg(
        sampled_ms=("interval_ms", "sum"),
        busy_percent_ms=("busy_percent_ms", "sum"),
        power_millijoules=("power_millijoules", "sum"),
        counter_first=("energy_counter_mj", "min"),
        counter_last=("energy_counter_mj", "max"),
        first_ms=("sampled_ms", "min"),
        last_ms=("sampled_ms", "max"),
    )
    span_ms = gpus["last_ms"] - gpus["first_ms"]
    added = gpus["counter_last"] - gpus["counter_first"]
    is_metered = (added > 0) & (span_ms > 0) & (span_ms <= gpus["sampled_ms"])
    counted = added * gpus["sampled_ms"] / span_ms.where(is_metered)
    gpus["millijoules"] = counted.where(is_metered, gpus["power_millijoules"])
    measures = ["sampled_ms", "busy_percent_ms", "millijoules"]
    return gpus.groupby(["node_name", "part_id", "hour"], as_index=False, dropna=False)[measures].sum()


def job_node_hours(jobs: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    columns = ["usage_date", "job_key", "part_id", "team_id", "user_name", "start_ms", "end_ms", *RESOURCES.values()]
    split = jobs[columns].assign(node_name=jobs["node_names"].str.split(","))
    split = split[split["end_ms"] > split["start_ms"]]
    split["node_count"] = split["node_name"].str.len()
    on_nodes = split.explode("node_name").merge(
        nodes[["usage_date", "node_name", "pool_id"]], on=["usage_date", "node_name"]
    )
    on_nodes["is_first_node"] = ~on_nodes.sort_values("node_name").duplicated(["usage_date", "job_key", "pool_id"])
    first = on_nodes["start_ms"] // HOUR_MS
    count = (on_nodes["end_ms"] - 1) // HOUR_MS - first + 1
    hours = on_nodes.loc[on_nodes.index.repeat(count)]
    hours = hours.assign(hour=first.repeat(count) + hours.groupby(level=0).cumcount())
    held_ms = np.minimum(hours["end_ms"], (hours["hour"] + 1) * HOUR_MS) - np.maximum(
        hours["start_ms"], hours["hour"] * HOUR_MS
    )
    hours["held_seconds"] = held_ms / 1000
    hours["present_seconds"] = hours["held_seconds"].where(hours["is_first_node"], 0)
    for component, amount in RESOURCES.items():
        hours[component] = hours[amount] // hours["node_count"] * held_ms
        hours[f"{component}_seconds"] = hours[component] / (UNITS[component] * 1000)
    keys = ["usage_date", "hour", "job_key", "part_id", "node_name", "pool_id", "team_id", "user_name"]
    measures = ["held_seconds", "present_seconds", *(f"{component}_seconds" for component in COMPONENTS)]
    return hours[[*keys, *measures, *COMPONENTS]].reset_index(drop=True)


def usage(held: pd.DataFrame, samples: pd.DataFrame, nodes: pd.DataFrame) -> pd.DataFrame:
    usage = held.merge(samples, on=["node_name", "part_id", "hour"], how="left")
    usage["busy_share"] = usage["busy_percent_ms"] / usage["sampled_ms"] / 100
    seconds = usage["sampled_ms"].fillna(0) / 1000
    usage["telemetry_coverage_share"] = np.minimum(seconds / usage["gpu_seconds"], 1)
    usage["millijoules"] = usage["millijoules"].fillna(_unnamed(usage, samples, nodes))
    usage["energy_weight"] = usage["millijoules"] * 1000
    usage["energy_kwh"] = usage["millijoules"] / 3_600_000_000
    return usage


def _unnamed(usage: pd.DataFrame, samples: pd.DataFrame, nodes: pd.DataFrame) -> pd.Series:
    """Jobs too short for a sample share, with the idle GPUs, what their node drew beyond what samples name."""
    unnamed = usage[usage["millijoules"].isna()]
    drawn = samples.groupby(NODE_HOUR)["millijoules"].sum().rename("drawn")
    named = usage.groupby(NODE_HOUR)[["millijoules", "gpu_seconds"]].sum()
    lacking = unnamed.groupby(NODE_HOUR)["gpu_seconds"].sum().rename("lacking")
    capacity = nodes.drop_duplicates("node_name").set_index("node_name")["gpu_units"] / UNITS["gpu"] * 3600
    rests = pd.concat([named, drawn, lacking], axis=1, join="inner")
    idle = rests.index.get_level_values("node_name").map(capacity) - rests["gpu_seconds"]
    rests["rate"] = (rests["drawn"] - rests["millijoules"]) / (rests["lacking"] + idle)
    rates = unnamed[NODE_HOUR].merge(rests["rate"], left_on=NODE_HOUR, right_index=True, how="left")["rate"]
    return unnamed["gpu_seconds"] * rates
