"""The pipeline as a Polars script for this company's policy alone: lazy frames on the streaming engine.

Money is in floating point: near the exact result, but the parts add up to the bill only nearly.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
UNITS_PER_GPU = 25_200
RESOURCES = {"gpu": "gpu_units", "cpu": "cpu_millicores", "memory": "memory_mib"}
COMPONENTS = list(RESOURCES)
POOL_DAY = ["usage_date", "pool_id"]
POOL_HOUR = [*POOL_DAY, "hour"]
RESULT = ["usage_date", "pool_id", "component", "team_id", "job_key", "allocation_kind", "amount"]


def run(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes `allocations` and `job_usage` as folders of Parquet files under `target`."""
    landing = workspace_data / "landing"
    nodes, charges = _nodes(landing, days), _charges(landing, days)
    job_nodes = _collected(_job_nodes(_jobs(landing, seeds, days), nodes))
    _write(_job_usage(_hours(job_nodes), _roll_up(landing, days)), target / "job_usage")

    pool_job_hours = _collected(_hours(_job_pools(job_nodes)))
    pool_hours = _collected(_pool_hours(_node_costs(charges, nodes, seeds), pool_job_hours, nodes))
    direct = _collected(_direct(pool_job_hours, pool_hours))
    tagged = _collected(_tagged(charges, seeds))
    parts = [direct, _idle(pool_job_hours, pool_hours), tagged, _overhead(charges, direct, tagged)]
    _write(pl.concat([part.select(RESULT) for part in parts]), target / "allocations")


def _collected(table: pl.LazyFrame) -> pl.LazyFrame:
    """What is used more than once is worked out once."""
    return table.collect(engine="streaming").lazy()


def _write(table: pl.LazyFrame, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.sink_parquet(folder / "all.parquet", engine="streaming")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────
def _read(landing: Path, table: str, days: list[date]) -> pl.LazyFrame:
    files = [file for day in days for file in sorted((landing / table).glob(f"date={day}/*.parquet"))]
    return pl.scan_parquet(files, hive_partitioning=True, try_parse_hive_dates=True).rename({"date": "usage_date"})


def _milliseconds(column: str) -> pl.Expr:
    return pl.col(column).dt.epoch("ms")


def _nodes(landing: Path, days: list[date]) -> pl.LazyFrame:
    columns = ["usage_date", "node_name", "resource_id", "pool_id", *RESOURCES.values()]
    return _collected(_read(landing, "node_inventory", days).select(columns))


def _jobs(landing: Path, seeds: Path, days: list[date]) -> pl.LazyFrame:
    day_ms = pl.col("usage_date").cast(pl.Datetime("ms")).dt.epoch("ms")
    return (
        _read(landing, "jobs", days)
        .join(_payer_rules(seeds, "account"), on="account", how="left")
        .select(
            "usage_date",
            "job_key",
            "part_id",
            pl.col("team_id").fill_null("unattributed"),
            pl.col("node_names").str.split(",").alias("node_name"),
            pl.max_horizontal(_milliseconds("start_at"), day_ms).alias("start_ms"),
            pl.min_horizontal(pl.coalesce(_milliseconds("end_at"), _milliseconds("as_of_at")), day_ms + DAY_MS).alias(
                "end_ms"
            ),
            *RESOURCES.values(),
        )
        .filter(pl.col("end_ms") > pl.col("start_ms"))
    )


def _charges(landing: Path, days: list[date]) -> pl.LazyFrame:
    return _read(landing, "charges", days).select(
        "usage_date",
        "resource_id",
        "service_name",
        "tags",
        (_milliseconds("charge_start_at") // HOUR_MS).alias("hour"),
        pl.col("effective_cost").cast(pl.Float64).alias("cost"),
    )


def _payer_rules(seeds: Path, named_by: str) -> pl.LazyFrame:
    rules = pl.scan_csv(seeds / "policy" / "payer_rules.csv", infer_schema=False)
    return rules.filter(pl.col(named_by).is_not_null()).select(named_by, "team_id")


def _price_shares(seeds: Path) -> dict[str, float]:
    types = pl.read_csv(seeds / "reference" / "instance_types.csv", infer_schema=False)
    row = types.row(by_predicate=pl.col("instance_type") == "h100-8", named=True)
    weights = {component: int(row[f"{component}_price_weight"]) for component in COMPONENTS}
    return {component: weight / sum(weights.values()) for component, weight in weights.items()}


# ── use ──────────────────────────────────────────────────────────────────────────────────────────────
def _roll_up(landing: Path, days: list[date]) -> pl.LazyFrame:
    interval = pl.col("interval_ms")

    def summed(gauge: str) -> pl.Expr:
        return ((pl.col(gauge) * 1000).round().cast(pl.Int64) * interval).sum()

    return (
        _read(landing, "gpu_samples", days)
        .filter(pl.col("part_id").is_not_null())
        .group_by("node_name", "part_id", (_milliseconds("sampled_at") // HOUR_MS).alias("hour"))
        .agg(
            interval.sum().alias("busy_sampled_ms"),
            summed("util_percent").alias("busy_millipercent_ms"),
            summed("power_watts").alias("energy_microjoules"),
        )
    )


def _job_nodes(jobs: pl.LazyFrame, nodes: pl.LazyFrame) -> pl.LazyFrame:
    return (
        jobs.with_columns(pl.col(amount) // pl.col("node_name").list.len() for amount in RESOURCES.values())
        .explode("node_name")
        .join(nodes.select("usage_date", "node_name", "pool_id"), on=["usage_date", "node_name"])
        .rename({amount: component for component, amount in RESOURCES.items()})
    )


def _job_pools(job_nodes: pl.LazyFrame) -> pl.LazyFrame:
    return job_nodes.group_by(*POOL_DAY, "team_id", "job_key", "start_ms", "end_ms").agg(pl.col(COMPONENTS).sum())


def _hours(held: pl.LazyFrame) -> pl.LazyFrame:
    """Amounts that are held from a start to an end, as amount × milliseconds of each hour between them."""
    start, end, hour = pl.col("start_ms"), pl.col("end_ms"), pl.col("hour")
    held_ms = pl.min_horizontal(end, (hour + 1) * HOUR_MS) - pl.max_horizontal(start, hour * HOUR_MS)
    return (
        held.with_columns(hour=pl.int_ranges(start // HOUR_MS, (end - 1) // HOUR_MS + 1))
        .explode("hour")
        .with_columns(pl.col(COMPONENTS) * held_ms)
    )


def _job_usage(job_node_hours: pl.LazyFrame, samples: pl.LazyFrame) -> pl.LazyFrame:
    return job_node_hours.join(samples, on=["node_name", "part_id", "hour"], how="left").select(
        "usage_date",
        (pl.col("hour") * HOUR_MS).cast(pl.Datetime("ms")).alias("hour_at"),
        "node_name",
        "job_key",
        (pl.col("gpu") // UNITS_PER_GPU).alias("gpu_held_ms"),
        "busy_sampled_ms",
        "busy_millipercent_ms",
        "energy_microjoules",
    )


# ── cost ─────────────────────────────────────────────────────────────────────────────────────────────
def _long(table: pl.LazyFrame, keys: list[str], kind: str) -> pl.LazyFrame:
    """One row per component and `amount` from one column per component."""
    return table.unpivot(COMPONENTS, index=keys, variable_name="component", value_name="amount").with_columns(
        allocation_kind=pl.lit(kind)
    )


def _node_costs(charges: pl.LazyFrame, nodes: pl.LazyFrame, seeds: Path) -> pl.LazyFrame:
    costs = (
        charges.join(nodes.select("usage_date", "resource_id", "pool_id"), on=["usage_date", "resource_id"])
        .group_by(POOL_HOUR)
        .agg(pl.col("cost").sum())
    )
    shares = _price_shares(seeds)
    return costs.select(
        *POOL_HOUR, *(pl.col("cost").mul(share).alias(f"{name}_cost") for name, share in shares.items())
    )


def _pool_hours(costs: pl.LazyFrame, pool_job_hours: pl.LazyFrame, nodes: pl.LazyFrame) -> pl.LazyFrame:
    """What each hour of a pool cost, used and idle, and what was held of it."""
    capacity = nodes.group_by(POOL_DAY).agg(
        pl.col(amount).sum().mul(HOUR_MS).alias(f"{name}_capacity") for name, amount in RESOURCES.items()
    )
    held = pool_job_hours.group_by(POOL_HOUR).agg(pl.col(name).sum().alias(f"{name}_held") for name in COMPONENTS)
    hours = costs.join(capacity, on=POOL_DAY).join(held, on=POOL_HOUR, how="left")
    for name in COMPONENTS:
        cost, used = pl.col(f"{name}_cost"), pl.col(f"{name}_held").fill_null(0) / pl.col(f"{name}_capacity")
        hours = hours.with_columns((cost * used).alias(f"{name}_used"), (cost - cost * used).alias(f"{name}_idle"))
    return hours


def _direct(pool_job_hours: pl.LazyFrame, pool_hours: pl.LazyFrame) -> pl.LazyFrame:
    payer = [*POOL_DAY, "team_id", "job_key"]
    parts = (
        pool_job_hours.join(pool_hours, on=POOL_HOUR)
        .group_by(payer)
        .agg((pl.col(f"{name}_used") * pl.col(name) / pl.col(f"{name}_held")).sum().alias(name) for name in COMPONENTS)
    )
    return _long(parts, payer, "direct")


def _idle(pool_job_hours: pl.LazyFrame, pool_hours: pl.LazyFrame) -> pl.LazyFrame:
    """The idle cost of a pool's day, in proportion to use of the day."""
    payer = [*POOL_DAY, "team_id", "job_key"]
    amounts = [f"{name}_{measure}" for name in COMPONENTS for measure in ("idle", "held")]
    parts = (
        pool_job_hours.group_by(payer)
        .agg(pl.col(COMPONENTS).sum())
        .join(pool_hours.group_by(POOL_DAY).agg(pl.col(amounts).sum()), on=POOL_DAY)
        .with_columns(pl.col(f"{name}_idle") * pl.col(name) / pl.col(f"{name}_held") for name in COMPONENTS)
        .select(*payer, *(pl.col(f"{name}_idle").alias(name) for name in COMPONENTS))
    )
    return _long(parts, payer, "idle")


def _of_no_job(table: pl.LazyFrame, pool_id: str, component: str, kind: str) -> pl.LazyFrame:
    return table.with_columns(
        pool_id=pl.lit(pool_id),
        component=pl.lit(component),
        job_key=pl.lit(None, pl.String),
        allocation_kind=pl.lit(kind),
    )


def _tagged(charges: pl.LazyFrame, seeds: Path) -> pl.LazyFrame:
    tag = pl.lit("team=") + pl.col("tags").str.json_path_match("$.team")
    amounts = (
        charges.filter(pl.col("service_name") == "Object Storage")
        .group_by("usage_date", "tags")
        .agg(pl.col("cost").sum())
        .with_columns(tag=tag)
        .join(_payer_rules(seeds, "tag"), on="tag", how="left")
        .group_by("usage_date", pl.col("team_id").fill_null("unattributed"))
        .agg(pl.col("cost").sum().alias("amount"))
    )
    return _of_no_job(amounts, "buckets", "storage", "direct")


def _overhead(charges: pl.LazyFrame, direct: pl.LazyFrame, tagged: pl.LazyFrame) -> pl.LazyFrame:
    """What belongs to nobody, by what each team pays directly on the day."""
    weights = (
        pl.concat([direct.select(RESULT), tagged.select(RESULT)])
        .group_by("usage_date", "team_id")
        .agg(pl.col("amount").sum().alias("weight"))
    )
    costs = charges.filter(pl.col("service_name") == "Data Transfer").group_by("usage_date").agg(pl.col("cost").sum())
    totals = weights.group_by("usage_date").agg(pl.col("weight").sum().alias("total"))
    parts = weights.join(costs.join(totals, on="usage_date"), on="usage_date").select(
        "usage_date", "team_id", (pl.col("cost") * pl.col("weight") / pl.col("total")).alias("amount")
    )
    return _of_no_job(parts, "network", "network", "overhead")
