"""What DuckDB alone needs to read the samples, and to add them up by GPU, hour and job: less than that nobody can need.

The signatures are those of the peers, so that all are measured the same way.
"""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path

import duckdb


def scan(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Reads every column that the roll-up needs; writes one row."""
    _write(SCAN, workspace_data, target, days)


def roll_up(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes one row per GPU, hour and named job."""
    _write(ROLL_UP, workspace_data, target, days)


def connect(target: Path) -> duckdb.DuckDBPyConnection:
    """DuckDB with the same means for whoever is measured."""
    con = duckdb.connect()
    con.execute("set threads = 2")
    con.execute(f"set memory_limit = '{os.environ.get('BENCH_MEMORY', '1GB')}'")
    con.execute(f"set temp_directory = '{target / 'spilled'}'")
    con.execute("set preserve_insertion_order = false")
    con.execute("set TimeZone = 'UTC'")
    return con


def _write(query: str, workspace_data: Path, target: Path, days: list[date]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    landed = workspace_data / "landing" / "gpu_samples"
    files = [str(file) for day in days for file in sorted(landed.glob(f"date={day}/*.parquet"))]
    with connect(target) as con:
        con.execute(f"create temp view samples as from read_parquet({files}, hive_partitioning = false)")
        con.execute(f"copy ({query}) to '{target}/result.parquet' (format parquet)")


SCAN = """
select
    sum(strlen(node_name)) as node_name,
    sum(gpu_index) as gpu_index,
    sum(strlen(part_id)) as part_id,
    sum(epoch_us(sampled_at)) as sampled_at,
    sum(interval_ms) as interval_ms,
    sum(util_percent) as util_percent,
    sum(power_watts) as power_watts,
    sum(energy_counter_mj) as energy_counter_mj
from samples
"""

ROLL_UP = """
select
    node_name,
    gpu_index,
    part_id,
    epoch_us(sampled_at) // 3600000000 as hour,
    sum(interval_ms)::bigint as sampled_ms,
    sum((util_percent * 1000)::bigint * interval_ms)::bigint as busy_millipercent_ms,
    sum((power_watts * 1000)::bigint * interval_ms)::bigint as energy_microjoules,
    min(energy_counter_mj) as counter_least_mj,
    max(energy_counter_mj) as counter_greatest_mj
from samples
group by node_name, gpu_index, part_id, hour
"""
