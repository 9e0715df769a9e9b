"""The facts, with the columns that this company's policy fills."""

from __future__ import annotations

import polars as pl

from tests.bench.peer_polars.costs import PAYER, POOL_DAY
from tests.bench.peer_polars.reading import COMPONENTS, HOUR_MS, UNITS

DRIVERS = {"gpu": "gpu_seconds", "cpu": "cpu_core_seconds", "memory": "memory_gib_seconds"}
ALLOCATION_POLICY = "allocation_policies/*/*@2025-01-01"
IDLE_POLICY = "idle_policies/*/*@2025-01-01"
NO_TEXT = pl.lit(None, pl.String)


def _status(is_final: pl.Expr) -> pl.Expr:
    return pl.when(is_final).then(pl.lit("final")).otherwise(pl.lit("provisional")).alias("cost_status")


def _instant() -> pl.Expr:
    return (pl.col("hour") * HOUR_MS).cast(pl.Datetime("ms")).alias("hour_at")


def billed_costs(lines: pl.LazyFrame) -> pl.LazyFrame:
    return lines.with_columns(
        _status(pl.col("is_final")),
        allocatable_cost=pl.col("effective_cost"),
        owner_project_id=NO_TEXT,
        commitment_fee_key=NO_TEXT,
    ).drop("is_final", "hour")


def job_usage_hourly(usage: pl.LazyFrame) -> pl.LazyFrame:
    names = {name: f"{name}_weight" for name in COMPONENTS}
    names |= {"cpu_seconds": "cpu_core_seconds", "memory_seconds": "memory_gib_seconds"}
    return (
        usage.with_columns(
            _instant(),
            cluster_id=pl.lit("titan"),
            project_id=NO_TEXT,
            workload_class=pl.lit("unclassified"),
            class_weight=pl.lit(1),
        )
        .drop("hour")
        .rename(names)
    )


def pool_hours(pool_hours: pl.LazyFrame) -> pl.LazyFrame:
    zeros = {f"{cause}_{what}": 0.0 for cause in ("down", "reserved", "stranded") for what in ("hours", "cost")}
    parts = []
    for name in COMPONENTS:
        cost, capacity = pl.col(f"{name}_cost"), pl.col(f"{name}_capacity")
        held, unit = pl.col(f"{name}_held").fill_null(0), UNITS[name] * HOUR_MS
        parts.append(
            pool_hours.select(
                *POOL_DAY,
                _instant(),
                pl.lit(name).alias("component"),
                pl.lit("USD").alias("currency"),
                cost.alias("cost"),
                (capacity / unit).alias("capacity_hours"),
                (held / unit).alias("used_hours"),
                ((capacity - held) / unit).alias("unscheduled_hours"),
                pl.col(f"{name}_used").alias("used_cost"),
                pl.col(f"{name}_idle").alias("unscheduled_cost"),
                (cost * unit / capacity).alias("rate"),
                *(pl.lit(value).alias(column) for column, value in zeros.items()),
                pl.lit("direct").alias("method"),
                pl.lit(ALLOCATION_POLICY).alias("allocation_policy_row"),
                pl.lit(", ".join([IDLE_POLICY] * 4)).alias("idle_policy_rows"),
            )
        )
    return pl.concat(parts)


def _of_jobs(parts: pl.LazyFrame, name: str, kind: str) -> pl.LazyFrame:
    is_direct = kind == "direct"
    quantity = pl.col(f"{name}_quantity") / (UNITS[name] * 1000) if is_direct else pl.lit(None, pl.Float64)
    return parts.filter(pl.col(name).is_not_null()).select(
        *POOL_DAY,
        pl.lit(name).alias("component"),
        *PAYER,
        pl.lit(kind).alias("allocation_kind"),
        pl.lit(None if is_direct else "unscheduled", pl.String).alias("idle_cause"),
        pl.col(name).alias("amount"),
        pl.lit(DRIVERS[name] if is_direct else None, pl.String).alias("driver"),
        quantity.alias("driver_quantity"),
        pl.lit("in proportion to use").alias("reason"),
        pl.lit(ALLOCATION_POLICY if is_direct else IDLE_POLICY).alias("policy_row"),
    )


def _of_teams(parts: pl.LazyFrame, kind: str, reason: str) -> pl.LazyFrame:
    said = {"allocation_kind": kind, "reason": reason, "policy_row": ALLOCATION_POLICY}
    return parts.with_columns(pl.lit(value).alias(column) for column, value in said.items())


def cost_allocations(
    direct: pl.LazyFrame, idle: pl.LazyFrame, tagged: pl.LazyFrame, shared: pl.LazyFrame, lines: pl.LazyFrame
) -> pl.LazyFrame:
    parts = [_of_jobs(table, name, kind) for name in COMPONENTS for table, kind in ((direct, "direct"), (idle, "idle"))]
    parts.append(_of_teams(tagged, "direct", "the bill names the owner"))
    parts.append(_of_teams(shared, "shared", "overhead by direct_cost"))
    keys = [*POOL_DAY, "component"]
    statuses = lines.group_by(keys).agg(_status(pl.col("is_final").all()))
    return (
        pl.concat(parts, how="diagonal")
        .join(statuses, on=keys)
        .with_columns(currency=pl.lit("USD"), project_id=NO_TEXT, method=pl.lit("direct"), counterparty_team_id=NO_TEXT)
    )


def job_days(jobs: pl.LazyFrame) -> pl.LazyFrame:
    unused = ["part_id", "node_names", "gpu_units", "cpu_millicores", "memory_mib", "start_ms", "end_ms"]
    return jobs.with_columns(
        project_id=NO_TEXT,
        workload_class=pl.lit("unclassified"),
        workload_rule=NO_TEXT,
        is_class_self_declared=pl.lit(False),
        checkpoint_interval_seconds=pl.lit(None, pl.Int64),
        part_count=pl.lit(1),
        is_request_missing=pl.col("cpu_millicores").is_null() | pl.col("memory_mib").is_null(),
        gpus=pl.col("gpu_units") / UNITS["gpu"],
    ).drop(unused)
