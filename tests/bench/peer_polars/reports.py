"""The reports, from the facts."""

from __future__ import annotations

import polars as pl

from tests.bench.peer_polars.costs import POOL_DAY, POOL_HOUR
from tests.bench.peer_polars.facts import NO_TEXT
from tests.bench.peer_polars.reading import COMPONENTS, HOUR_MS, UNITS, month

KINDS = ["direct", "idle", "shared", "burst", "outcome_credit", "adjustment", "unattributed"]
CAUSES = ["down", "reserved", "stranded", "unscheduled"]
TEAM_NAME = pl.coalesce("team_name", "team_id").alias("team_name")
CONSTANT = {"project_id": NO_TEXT, "project_name": NO_TEXT, "currency": pl.lit("USD")}


def _amount(column: str, value: str) -> pl.Expr:
    return pl.col("amount").filter(pl.col(column) == value).sum()


def _used(usage: pl.LazyFrame, keys: list[str]) -> pl.LazyFrame:
    """What was held, how much of it telemetry knows of, and how much of that was busy."""
    seconds, busy = pl.col("gpu_seconds"), pl.col("busy_share")
    return usage.group_by(keys).agg(
        *(pl.col(f"{name}_seconds").sum() for name in COMPONENTS),
        pl.col("energy_kwh").sum(),
        seconds.filter(busy.is_not_null()).sum().alias("sampled_seconds"),
        (seconds * busy).sum().alias("busy_seconds"),
    )


def _is_final() -> pl.Expr:
    is_final = (pl.col("cost_status") == "final").all()
    return pl.when(is_final).then(pl.lit("final")).otherwise(pl.lit("provisional")).alias("cost_status")


def team_costs_daily(
    allocations: pl.LazyFrame, usage: pl.LazyFrame, teams: pl.LazyFrame, pools: pl.LazyFrame
) -> pl.LazyFrame:
    keys = [*POOL_DAY, "component", "team_id"]
    costs = allocations.group_by(keys).agg(
        *(_amount("allocation_kind", kind).alias(f"{kind}_cost") for kind in KINDS),
        *(_amount("idle_cause", cause).alias(f"idle_{cause}_cost") for cause in CAUSES),
        pl.col("amount").sum().alias("total_cost"),
        _is_final(),
    )
    hours = _used(usage, [*POOL_DAY, "team_id"]).select(
        *POOL_DAY,
        "team_id",
        pl.lit("gpu").alias("component"),
        (pl.col("gpu_seconds") / 3600).alias("gpu_hours"),
        (pl.col("sampled_seconds") / 3600).alias("sampled_gpu_hours"),
        (pl.col("busy_seconds") / 3600).alias("busy_gpu_hours"),
    )
    return (
        costs.join(hours, on=keys, how="left")
        .join(teams, on="team_id", how="left")
        .join(pools, on="pool_id")
        .with_columns(
            month(), TEAM_NAME, pl.col("team_name").alias("team_path"), billing_mode=pl.lit("chargeback"), **CONSTANT
        )
    )


def job_receipts(
    allocations: pl.LazyFrame, usage: pl.LazyFrame, jobs: pl.LazyFrame, teams: pl.LazyFrame, pools: pl.LazyFrame
) -> pl.LazyFrame:
    keys = [*POOL_DAY, "job_key"]
    is_direct, amount = pl.col("allocation_kind") == "direct", pl.col("amount")
    costs = (
        allocations.filter(pl.col("job_key").is_not_null())
        .group_by(keys)
        .agg(
            *(
                amount.filter(is_direct & (pl.col("component") == name)).sum().alias(f"{name}_cost")
                for name in COMPONENTS
            ),
            amount.filter(~is_direct).sum().alias("idle_cost"),
            amount.sum().alias("total_cost"),
        )
    )
    described = ["job_id", "job_name", "cluster_id", "state", "team_id", "user_name", "start_at", "end_at"]
    sampled = pl.col("sampled_seconds")
    busy_share = pl.when(sampled > 0).then(pl.col("busy_seconds") / sampled)
    zeros = {f"{kind}_cost": 0.0 for kind in ("energy", "other_direct", "burst", "outcome_credit", "adjustment")}
    return (
        costs.join(_used(usage, keys), on=keys)
        .join(jobs.select("usage_date", "job_key", *described), on=["usage_date", "job_key"])
        .join(teams, on="team_id", how="left")
        .join(pools.select("pool_id", "pool_name", "gpu_model"), on="pool_id")
        .with_columns(
            month(),
            TEAM_NAME,
            busy_share.alias("busy_share"),
            (pl.col("gpu_cost") * (1 - busy_share)).alias("held_idle_cost"),
            (pl.col("gpu_seconds") / 3600).alias("gpu_hours"),
            (pl.col("cpu_seconds") / 3600).alias("core_hours"),
            (pl.col("memory_seconds") / 3600).alias("memory_gib_hours"),
            *(pl.lit(value).alias(column) for column, value in zeros.items()),
            workload_class=pl.lit("unclassified"),
            **CONSTANT,
        )
        .drop("sampled_seconds", "busy_seconds", *(f"{name}_seconds" for name in COMPONENTS))
    )


def idle_daily(pool_hours: pl.LazyFrame, pools: pl.LazyFrame) -> pl.LazyFrame:
    is_idle = pl.col("idle_cause") == "unscheduled"
    parts = []
    for name in COMPONENTS:
        unit, capacity, held = UNITS[name] * HOUR_MS, pl.col(f"{name}_capacity"), pl.col(f"{name}_held").fill_null(0)
        parts.append(
            pool_hours.group_by(POOL_DAY).agg(
                pl.lit(name).first().alias("component"),
                (capacity.sum() / unit).alias("capacity_hours"),
                ((capacity - held).sum() / unit).alias("idle_hours"),
                pl.col(f"{name}_idle").sum().alias("idle_cost"),
                pl.col(f"{name}_cost").sum().alias("pool_cost"),
            )
        )
    return (
        pl.concat(parts)
        .join(pl.LazyFrame({"idle_cause": CAUSES}), how="cross")
        .join(pools, on="pool_id")
        .with_columns(
            pl.when(is_idle).then(pl.col(name)).otherwise(0.0).alias(name) for name in ("idle_hours", "idle_cost")
        )
        .with_columns(
            month(), (pl.col("idle_hours") / pl.col("capacity_hours")).alias("idle_share"), currency=pl.lit("USD")
        )
    )


def team_costs_monthly(daily: pl.LazyFrame) -> pl.LazyFrame:
    keys = ["month_date", "team_id", "team_name", "team_path", "cost_centre", "component", "currency"]
    hours = (pl.col(name) for name in ("gpu_hours", "sampled_gpu_hours", "busy_gpu_hours"))
    return (
        daily.group_by(keys)
        .agg(
            *(pl.col(f"{kind}_cost").sum() for kind in KINDS),
            pl.col("total_cost").sum(),
            *(pl.when(column.is_not_null().any()).then(column.sum()) for column in hours),
            pl.col("usage_date").n_unique().alias("day_count"),
            _is_final(),
        )
        .with_columns(project_id=NO_TEXT, project_name=NO_TEXT)
    )


def method_comparison(pool_job_hours: pl.LazyFrame, pool_hours: pl.LazyFrame, teams: pl.LazyFrame) -> pl.LazyFrame:
    """All work weighs the same, so weights of classes change nothing; time does."""
    keys = [*POOL_HOUR, "team_id"]
    present = pool_job_hours.group_by(POOL_HOUR).agg(pl.col("present_seconds").sum().alias("present"))
    used = [pl.col(f"{name}_used") for name in COMPONENTS]
    shares = [pl.col(f"{name}_used") * pl.col(name) / pl.col(f"{name}_held") for name in COMPONENTS]
    by_time = pl.sum_horizontal(used) * pl.col("present_seconds") / pl.col("present")
    charged, by_other = pl.col("charged_cost"), pl.col("time_method_cost")
    return (
        pool_job_hours.group_by(keys)
        .agg(pl.col(*COMPONENTS, "present_seconds").sum())
        .join(pool_hours, on=POOL_HOUR)
        .join(present, on=POOL_HOUR)
        .group_by(month(), "team_id")
        .agg(pl.sum_horizontal(shares).sum().alias("charged_cost"), by_time.sum().alias("time_method_cost"))
        .join(teams.select("team_id", "team_name"), on="team_id", how="left")
        .with_columns(
            TEAM_NAME,
            pl.lit("USD").alias("currency"),
            charged.alias("direct_method_cost"),
            charged.alias("complexity_method_cost"),
            pl.min_horizontal(charged, by_other).alias("lowest_cost"),
            pl.max_horizontal(charged, by_other).alias("highest_cost"),
            (charged - by_other).abs().alias("range_cost"),
        )
    )
