"""What was landed and decided, as lazy frames."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RESOURCES = {"gpu": "gpu_units", "cpu": "cpu_millicores", "memory": "memory_mib"}
UNITS = {"gpu": 25_200, "cpu": 1_000, "memory": 1_024}
COMPONENTS = list(RESOURCES)


def landed(landing: Path, table: str, days: list[date]) -> pl.LazyFrame:
    files = [file for day in days for file in sorted((landing / table).glob(f"date={day}/*.parquet"))]
    return pl.scan_parquet(files, hive_partitioning=True, try_parse_hive_dates=True).rename({"date": "usage_date"})


def milliseconds(column: str) -> pl.Expr:
    return pl.col(column).dt.epoch("ms")


def month() -> pl.Expr:
    return pl.col("usage_date").dt.truncate("1mo").alias("month_date")


def nodes(landing: Path, days: list[date]) -> pl.LazyFrame:
    columns = ["usage_date", "node_name", "resource_id", "pool_id", *RESOURCES.values()]
    return landed(landing, "node_inventory", days).select(columns)


def jobs(landing: Path, seeds: Path, days: list[date]) -> pl.LazyFrame:
    described = ["array_job_id", "cluster_id", "scheduler", "namespace", "qos", "job_name", "state", "exit_code"]
    keys = ["usage_date", "job_key", "job_id", "part_id", "account", "user_name", "node_names", *RESOURCES.values()]
    day_ms = pl.col("usage_date").cast(pl.Datetime("ms")).dt.epoch("ms")
    return (
        landed(landing, "jobs", days)
        .join(_payer_rules(seeds, "account"), on="account", how="left")
        .with_columns(
            pl.col("team_id").fill_null("unattributed"),
            pl.col("end_at").is_null().alias("is_running"),
            pl.coalesce("end_at", "as_of_at").alias("end_at"),
        )
        .select(
            *keys,
            *described,
            "team_id",
            "payer_rule",
            "is_running",
            pl.col("partition").alias("partition_name"),
            *(pl.col(name).dt.replace_time_zone(None) for name in ("submit_at", "start_at", "end_at")),
            pl.max_horizontal(milliseconds("start_at"), day_ms).alias("start_ms"),
            pl.min_horizontal(milliseconds("end_at"), day_ms + DAY_MS).alias("end_ms"),
        )
    )


def charges(landing: Path, days: list[date]) -> pl.LazyFrame:
    keys = ["usage_date", "charge_key", "provider", "invoice_id", "charge_category", "charge_description"]
    described = ["service_name", "resource_id", "tags", "currency", "is_final"]
    amounts = ["list_cost", "billed_cost", "effective_cost"]
    return landed(landing, "charges", days).select(
        *keys,
        *described,
        pl.col("source").alias("source_name"),
        pl.col("billing_period_start_at").dt.date().alias("billing_period_date"),
        pl.col("charge_start_at").dt.replace_time_zone(None).alias("spread_start_at"),
        pl.col("charge_end_at").dt.replace_time_zone(None).alias("spread_end_at"),
        (milliseconds("charge_start_at") // HOUR_MS).alias("hour"),
        *(pl.col(amount).cast(pl.Float64) for amount in amounts),
    )


def _seed(seeds: Path, name: str) -> pl.LazyFrame:
    return pl.scan_csv(seeds / f"{name}.csv", infer_schema=False)


def _policy_row(seed: str) -> pl.Expr:
    return pl.format(f"{seed}/{{}}@{{}}", "rule_order", "valid_from")


def _payer_rules(seeds: Path, named_by: str) -> pl.LazyFrame:
    rules = _seed(seeds, "policy/payer_rules").filter(pl.col(named_by).is_not_null())
    return rules.select(named_by, "team_id", _policy_row("payer_rules").alias("payer_rule"))


def tag_owners(seeds: Path) -> pl.LazyFrame:
    return _payer_rules(seeds, "tag").select("tag", pl.col("team_id").alias("owner_team_id"))


def cost_rules(seeds: Path) -> pl.LazyFrame:
    return _seed(seeds, "policy/cost_rules").select(
        "service_name",
        "component",
        pl.col("pool_id").alias("rule_pool_id"),
        _policy_row("cost_rules").alias("cost_rule"),
    )


def teams(seeds: Path) -> pl.LazyFrame:
    return _seed(seeds, "policy/teams").select("team_id", "team_name", "cost_centre")


def pools(seeds: Path) -> pl.LazyFrame:
    return _seed(seeds, "policy/pools").select("pool_id", "pool_name", "cluster_id", "gpu_model", "purchase_class")


def price_shares(seeds: Path) -> dict[str, float]:
    types = _seed(seeds, "reference/instance_types").collect()
    row = types.row(by_predicate=pl.col("instance_type") == "h100-8", named=True)
    weights = {component: int(row[f"{component}_price_weight"]) for component in COMPONENTS}
    return {component: weight / sum(weights.values()) for component, weight in weights.items()}
