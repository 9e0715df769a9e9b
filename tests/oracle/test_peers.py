"""The benchmark's hand-written scripts and the models say the same of the same company, table by table.

They share no code with the models, and were written for one policy alone: where they agree to the last digit, the
models' generality costs nothing but time, and what is measured against each other is the same work.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

from orchestration import dbt
from orchestration.dbt import Window
from orchestration.landing.loader import land
from orchestration.settings import load_sources
from orchestration.workspace import Workspace
from tests.bench import peer_duckdb, peer_pandas, peer_polars
from tests.bench.world import World, write_world

DAYS = Window(date(2026, 1, 1), date(2026, 1, 3))
KEYS = {
    "core.fct_billed_costs": ("usage_date", "charge_key", "pool_id", "component"),
    "core.fct_job_usage_hourly": ("hour_at", "job_key", "node_name"),
    "core.fct_pool_hours": ("hour_at", "pool_id", "component"),
    "core.fct_cost_allocations": (
        *("usage_date", "pool_id", "component", "team_id", "job_key"),
        *("allocation_kind", "idle_cause"),
    ),
    "core.fct_job_days": ("usage_date", "job_key"),
    "reporting.rpt_job_receipts": ("usage_date", "job_key", "pool_id"),
    "reporting.rpt_team_costs_daily": ("usage_date", "team_id", "pool_id", "component"),
    "reporting.rpt_idle_daily": ("usage_date", "pool_id", "component", "idle_cause"),
    "reporting.rpt_team_costs_monthly": ("month_date", "team_id", "component"),
    "reporting.rpt_method_comparison": ("month_date", "team_id"),
}
LEFT_OUT = {"policy_hash"}


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = write_world(
        World(gpus=80, days=DAYS.days, interval=300, jobs=1_500, lines=4_000, teams=7), tmp_path_factory.mktemp("world")
    )
    for source in load_sources(workspace.sources_file, workspace.data):
        land(source, DAYS.start, DAYS.end, workspace.data)
    dbt.build(workspace, DAYS, tests=False)
    return workspace


@pytest.fixture(scope="module")
def results(company: Workspace, tmp_path_factory: pytest.TempPathFactory) -> dict[ModuleType, Path]:
    folders = {peer: tmp_path_factory.mktemp("peer") for peer in (peer_duckdb, peer_polars, peer_pandas)}
    for peer, folder in folders.items():
        peer.run(company.data, company.seeds, folder, list(DAYS))
    return folders


@pytest.fixture
def books(company: Workspace) -> duckdb.DuckDBPyConnection:
    books = duckdb.connect(str(company.warehouse), read_only=True)
    books.execute("set TimeZone = 'UTC'")
    return books


def read(books: duckdb.DuckDBPyConnection, folder: Path, table: str) -> dict[str, str]:
    """Makes the script's table known as `theirs`; returns the columns and types of Apportion's."""
    books.execute(f"create temp view theirs as from read_parquet('{folder / table.split('.')[1]}/*.parquet')")
    described = books.execute(f"select column_name, column_type from (describe {table})").fetchall()
    columns = {name: kind for name, kind in described if name not in LEFT_OUT}
    assert set(columns) == {name for (name,) in books.execute("select column_name from (describe theirs)").fetchall()}
    return columns


@pytest.mark.parametrize("table", KEYS)
def test_the_exact_script_writes_the_same_rows_to_the_last_digit(
    books: duckdb.DuckDBPyConnection, results: dict[ModuleType, Path], table: str
) -> None:
    columns = ", ".join(read(books, results[peer_duckdb], table))
    assert books.execute(f"select count(*) from {table}").fetchall() > [(0,)]
    assert books.execute(f"(select {columns} from theirs) except all select {columns} from {table}").fetchall() == []
    assert books.execute(f"(select {columns} from {table}) except all select {columns} from theirs").fetchall() == []


def test_the_shortened_script_charges_the_same_amounts(
    company: Workspace, books: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    peer_duckdb.amounts(company.data, company.seeds, tmp_path, list(DAYS))
    columns = "usage_date, pool_id, component, team_id, job_key, allocation_kind, amount"
    theirs = f"(select {columns} from read_parquet('{tmp_path}/amounts/*.parquet'))"
    ours = f"(select {columns} from core.fct_cost_allocations)"
    assert books.execute(f"{theirs} except all {ours}").fetchall() == []
    assert books.execute(f"{ours} except all {theirs}").fetchall() == []


@pytest.mark.parametrize("table", KEYS)
@pytest.mark.parametrize("peer", [peer_polars, peer_pandas])
def test_scripts_in_floating_point_write_nearly_the_same(
    books: duckdb.DuckDBPyConnection, results: dict[ModuleType, Path], peer: ModuleType, table: str
) -> None:
    columns = read(books, results[peer], table)
    same = " and ".join(f"ours.{key} is not distinct from theirs.{key}" for key in KEYS[table])
    rows = [f"(select count(*) from {one})" for one in (table, "theirs", f"{table} as ours join theirs on {same}")]
    ((ours, others, both),) = books.execute(f"select {', '.join(rows)}").fetchall()
    assert ours == others == both > 0
    apart = {name: unlike(books, table, same, name, kind) for name, kind in columns.items()}
    assert {name: count for name, count in apart.items() if count} == {}


def unlike(books: duckdb.DuckDBPyConnection, table: str, same: str, column: str, kind: str) -> int:
    """How many values differ: numbers by more than 1e-9 of the greatest of them (their last digit is rounded)."""
    differ = f"ours.{column} is distinct from theirs.{column}"
    if kind.startswith("DECIMAL"):
        apart = f"abs(ours.{column}::double - theirs.{column}::double)"
        most = f"1e-9 * (1 + (select max(abs({column}::double)) from {table}))"
        differ = f"((ours.{column} is null) <> (theirs.{column} is null) or {apart} > {most})"
    ((count,),) = books.execute(f"select count(*) from {table} as ours join theirs on {same} where {differ}").fetchall()
    return count
