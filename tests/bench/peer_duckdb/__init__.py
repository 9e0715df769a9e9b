"""The whole pipeline as one hand-written DuckDB script for this company's policy alone: what an exact result must cost.

It writes what a reader of Apportion gets, row by row and to the last digit: the facts of bill, use, pools, allocations
and jobs, and the reports of teams, receipts, idle and methods. Amounts are integers of 1e-9, and each part is the
difference of two neighbouring rounded running shares, so that all parts together are the bill.

What it knows of the company, and therefore does not work out: times are whole seconds, jobs have one part and hold
whole GPUs, cores and GiB; bill lines last an hour; nodes stay in their pools, are never down or reserved, and have
enough cores and memory for each GPU, so that the only cause of idle is that nobody asked; no telemetry is missing and
no counter is reset; all work weighs the same; there is one cluster, one currency, one method and no transfer. Left
out altogether: hashes of the policy, the fairness report (it samples orders of payers), dimensions, reconciliation,
invoices, history.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb

from tests.bench.floors import connect
from tests.bench.peer_duckdb import arithmetic, costs, facts, reports, use
from tests.bench.peer_duckdb.arithmetic import each

DAYS_AT_ONCE = 7
"""A landed day needs no other day, so memory need not grow with the range."""


def run(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes a folder of Parquet files for each fact and report under `target`."""
    tables = {**facts.TABLES, **reports.DAILY}
    for batch in _batches(days):
        with _connect(target) as con:
            _read(con, workspace_data / "landing", seeds, batch)
            _work_out(con, use.STEPS)
            for table in use.DONE_WITH:
                con.execute(f"drop table {table}")
            _work_out(con, costs.STEPS | reports.STEPS)
            for name, query in tables.items():
                _write(con, target / name / f"{batch[0]}.parquet", query)
    with _connect(target) as con:
        _read_seeds(con, seeds)
        for name in reports.READ_AGAIN:
            con.execute(f"create temp view {name} as from read_parquet('{target / name}/*.parquet')")
        for name, query in reports.MONTHLY.items():
            _write(con, target / name / "all.parquet", query)


def amounts(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Who pays how much, and nothing else: the parts of allocations in as few columns as carry them."""
    for batch in _batches(days):
        with _connect(target) as con:
            _read(con, workspace_data / "landing", seeds, batch)
            _work_out(con, use.OF_JOBS | costs.STEPS)
            _write(con, target / "amounts" / f"{batch[0]}.parquet", facts.AMOUNTS)


def _batches(days: list[date]) -> Iterator[list[date]]:
    for first in range(0, len(days), DAYS_AT_ONCE):
        yield days[first : first + DAYS_AT_ONCE]


def _connect(target: Path) -> duckdb.DuckDBPyConnection:
    con = connect(target)
    for macro in arithmetic.MACROS:
        con.execute(macro)
    return con


def _read(con: duckdb.DuckDBPyConnection, landing: Path, seeds: Path, days: list[date]) -> None:
    for table in ("gpu_samples", "jobs", "charges", "node_inventory"):
        files = [str(file) for day in days for file in sorted((landing / table).glob(f"date={day}/*.parquet"))]
        con.execute(f"create temp view landed_{table} as from read_parquet({files}, hive_partitioning = true)")
    _read_seeds(con, seeds)


def _read_seeds(con: duckdb.DuckDBPyConnection, seeds: Path) -> None:
    for seed in ("payer_rules", "cost_rules", "pools", "teams"):
        con.execute(f"create temp table {seed} as from read_csv('{seeds}/policy/{seed}.csv', all_varchar = true)")
    types = f"read_csv('{seeds}/reference/instance_types.csv', all_varchar = true)"
    weights = each("{name}_price_weight::bigint as {name}_weight")
    con.execute(
        f"create temp table prices as select instance_type, {weights} from {types} where instance_type = 'h100-8'"
    )


def _work_out(con: duckdb.DuckDBPyConnection, steps: dict[str, str]) -> None:
    for table, query in steps.items():
        con.execute(f"create temp table {table} as {query}")


def _write(con: duckdb.DuckDBPyConnection, file: Path, query: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    con.execute(f"copy ({query}) to '{file}' (format parquet)")
