"""What jobs held, and what telemetry says of it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

from tests.bench.peer_polars.reading import COMPONENTS, HOUR_MS, RESOURCES, UNITS, landed, milliseconds

NODE_HOUR = ["node_name", "hour"]


def gpu_hours(landing: Path, days: list[date]) -> pl.LazyFrame:
    """By node, hour and job: what the samples add up to. Energy is what the counter added, or power times time."""
    interval, counter = pl.col("interval_ms"), pl.col("energy_counter_mj")
    span_ms, added = pl.col("last_ms") - pl.col("first_ms"), pl.col("counter_last") - pl.col("counter_first")
    is_metered = (added > 0) & (span_ms > 0) & (span_ms <= pl.col("sampled_ms"))
    return (
        landed(landing, "gpu_samples", days)
        .group_by("node_name", "gpu_index", "part_id", (milliseconds("sampled_at") // HOUR_MS).alias("hour"))
        .agg(
            interval.sum().alias("sampled_ms"),
            (pl.col("util_percent") * interval).sum().alias("busy_percent_ms"),
            ((pl.col("power_watts") * 1000).round() * interval / 1000).sum().alias("power_millijoules"),
            counter.min().alias("counter_first"),
            counter.max().alias("counter_last"),
            milliseconds("sampled_at").min().alias("first_ms"),
            milliseconds("sampled_at").max().alias("last_ms"),
        )
        .with_columns(
            pl.when(is_metered)
            .then(added * pl.col("sampled_ms") / span_ms)
            .otherwise("power_millijoules")
            .alias("millijoules")
        )
        .group_by("node_name", "part_id", "hour")
        .agg(pl.col("sampled_ms", "busy_percent_ms", "millijoules").sum())
    )


def job_node_hours(jobs: pl.LazyFrame, nodes: pl.LazyFrame) -> pl.LazyFrame:
    start, end, hour = pl.col("start_ms"), pl.col("end_ms"), pl.col("hour")
    held_ms = pl.min_horizontal(end, (hour + 1) * HOUR_MS) - pl.max_horizontal(start, hour * HOUR_MS)
    keys = ["usage_date", "job_key", "part_id", "team_id", "user_name", "start_ms", "end_ms"]
    first_node = pl.col("node_name").min().over("usage_date", "job_key", "pool_id")
    return (
        jobs.filter(end > start)
        .select(*keys, *RESOURCES.values(), pl.col("node_names").str.split(",").alias("node_name"))
        .with_columns(pl.col(amount) // pl.col("node_name").list.len() for amount in RESOURCES.values())
        .explode("node_name")
        .join(nodes.select("usage_date", "node_name", "pool_id"), on=["usage_date", "node_name"])
        .with_columns(is_first_node=pl.col("node_name") == first_node)
        .with_columns(hour=pl.int_ranges(start // HOUR_MS, (end - 1) // HOUR_MS + 1))
        .explode("hour")
        .with_columns((held_ms / 1000).alias("held_seconds"))
        .select(
            *keys[:5],
            "node_name",
            "pool_id",
            "hour",
            "held_seconds",
            pl.when("is_first_node").then("held_seconds").otherwise(0).alias("present_seconds"),
            *((pl.col(amount) * held_ms).alias(name) for name, amount in RESOURCES.items()),
        )
        .with_columns((pl.col(name) / (UNITS[name] * 1000)).alias(f"{name}_seconds") for name in COMPONENTS)
    )


def usage(held: pl.LazyFrame, samples: pl.LazyFrame, nodes: pl.LazyFrame) -> pl.LazyFrame:
    sampled_seconds = pl.col("sampled_ms").fill_null(0) / 1000
    sampled = held.join(samples, on=["node_name", "part_id", "hour"], how="left")
    rest = pl.col("rate") * pl.col("gpu_seconds")
    return (
        sampled.join(_rest_rates(sampled, samples, nodes), on=NODE_HOUR, how="left")
        .with_columns(
            (pl.col("busy_percent_ms") / pl.col("sampled_ms") / 100).alias("busy_share"),
            pl.min_horizontal(sampled_seconds / pl.col("gpu_seconds"), 1.0).alias("telemetry_coverage_share"),
            pl.coalesce("millijoules", rest).alias("millijoules"),
        )
        .with_columns(
            (pl.col("millijoules") * 1000).alias("energy_weight"),
            (pl.col("millijoules") / 3_600_000_000).alias("energy_kwh"),
        )
        .drop("part_id", "sampled_ms", "busy_percent_ms", "millijoules", "rate")
    )


def _rest_rates(sampled: pl.LazyFrame, samples: pl.LazyFrame, nodes: pl.LazyFrame) -> pl.LazyFrame:
    """Jobs too short for a sample share, with the idle GPUs, what their node drew beyond what samples name."""
    seconds, is_unnamed = pl.col("gpu_seconds"), pl.col("millijoules").is_null()
    held = sampled.group_by(NODE_HOUR).agg(
        pl.col("millijoules").sum().alias("named"),
        seconds.sum().alias("held"),
        seconds.filter(is_unnamed).sum().alias("unnamed"),
    )
    drawn = samples.group_by(NODE_HOUR).agg(pl.col("millijoules").sum().alias("drawn"))
    capacity = nodes.unique("node_name").select("node_name", capacity=pl.col("gpu_units") / UNITS["gpu"] * 3600)
    sharing = pl.col("unnamed") + pl.col("capacity") - pl.col("held")
    return (
        held.filter(pl.col("unnamed") > 0)
        .join(drawn, on=NODE_HOUR)
        .join(capacity, on="node_name")
        .select(*NODE_HOUR, ((pl.col("drawn") - pl.col("named")) / sharing).alias("rate"))
    )
