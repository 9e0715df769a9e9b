"""What was landed and decided, as data frames."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RESOURCES = {"gpu": "gpu_units", "cpu": "cpu_millicores", "memory": "memory_mib"}
UNITS = {"gpu": 25_200, "cpu": 1_000, "memory": 1_024}
COMPONENTS = list(RESOURCES)


def landed(landing: Path, table: str, days: list[date], columns: list[str]) -> pd.DataFrame:
    parts = [
        pd.read_parquet(file, columns=columns).assign(usage_date=day)
        for day in days
        for file in sorted((landing / table).glob(f"date={day}/*.parquet"))
    ]
    return pd.concat(parts, ignore_index=True)


def milliseconds(times: pd.Series) -> pd.Series:
    return times.dt.tz_localize(None).astype("datetime64[ms]").astype("int64")


def month(dates: pd.Series) -> pd.Series:
    return pd.to_datetime(dates).dt.to_period("M").dt.start_time.dt.date


def nodes(landing: Path, days: list[date]) -> pd.DataFrame:
    columns = ["node_name", "resource_id", "pool_id", "instance_type", *RESOURCES.values()]
    return landed(landing, "node_inventory", days, columns)


def jobs(landing: Path, seeds: Path, days: list[date]) -> pd.DataFrame:
    described = ["array_job_id", "cluster_id", "scheduler", "namespace", "partition", "qos", "job_name", "state"]
    keys = ["job_key", "job_id", "part_id", "account", "user_name", "exit_code", "node_names", *RESOURCES.values()]
    times = ["submit_at", "start_at", "end_at", "as_of_at"]
    jobs = landed(landing, "jobs", days, [*keys, *described, *times])
    rules = _payer_rules(seeds, "account")
    jobs = jobs.merge(rules, on="account", how="left")
    jobs["team_id"] = jobs["team_id"].fillna("unattributed")
    day_ms = pd.to_datetime(jobs["usage_date"]).astype("datetime64[ms]").astype("int64")
    jobs["is_running"] = jobs["end_at"].isna()
    jobs["end_at"] = jobs["end_at"].fillna(jobs["as_of_at"])
    jobs["start_ms"] = np.maximum(milliseconds(jobs["start_at"]), day_ms)
    jobs["end_ms"] = np.minimum(milliseconds(jobs["end_at"]), day_ms + DAY_MS)
    return jobs


def charges(landing: Path, days: list[date]) -> pd.DataFrame:
    keys = ["charge_key", "provider", "invoice_id", "billing_period_start_at", "charge_start_at", "charge_end_at"]
    described = ["charge_category", "charge_description", "service_name", "resource_id", "tags", "currency", "source"]
    amounts = ["list_cost", "billed_cost", "effective_cost"]
    charges = landed(landing, "charges", days, [*keys, *described, "is_final", *amounts])
    charges[amounts] = charges[amounts].astype(float)
    charges["hour"] = milliseconds(charges["charge_start_at"]) // HOUR_MS
    return charges


def _seed(seeds: Path, name: str) -> pd.DataFrame:
    return pd.read_csv(seeds / f"{name}.csv", dtype=str)


def _policy_row(seed: str, rules: pd.DataFrame) -> pd.Series:
    return f"{seed}/" + rules["rule_order"] + "@" + rules["valid_from"]


def _payer_rules(seeds: Path, named_by: str) -> pd.DataFrame:
    rules = _seed(seeds, "policy/payer_rules").dropna(subset=named_by)
    return rules.assign(payer_rule=_policy_row("payer_rules", rules))[[named_by, "team_id", "payer_rule"]]


def tag_owners(seeds: Path) -> pd.Series:
    return _payer_rules(seeds, "tag").set_index("tag")["team_id"]


def cost_rules(seeds: Path) -> pd.DataFrame:
    rules = _seed(seeds, "policy/cost_rules")
    rules = rules.assign(cost_rule=_policy_row("cost_rules", rules))
    return rules[["service_name", "component", "pool_id", "cost_rule"]].rename(columns={"pool_id": "rule_pool_id"})


def teams(seeds: Path) -> pd.DataFrame:
    return _seed(seeds, "policy/teams")[["team_id", "team_name", "cost_centre"]]


def pools(seeds: Path) -> pd.DataFrame:
    return _seed(seeds, "policy/pools")[["pool_id", "pool_name", "cluster_id", "gpu_model", "purchase_class"]]


def price_shares(seeds: Path) -> dict[str, float]:
    types = _seed(seeds, "reference/instance_types").set_index("instance_type")
    weights = types.loc["h100-8", [f"{component}_price_weight" for component in COMPONENTS]].astype(float)
    return dict(zip(COMPONENTS, weights / weights.sum(), strict=True))
