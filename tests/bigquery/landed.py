"""The golden company's landed days, to be loaded: small, and with something in every kind of table."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb

from orchestration.landing.days import forget_undeclared
from orchestration.landing.loader import land
from orchestration.landing.schemas import WHOLE_TABLES
from orchestration.settings import load_sources
from orchestration.warehouse.settings import BigQuerySettings, client
from orchestration.warehouse.tables import LANDINGS, SCHEMAS, columns
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace

DAY = date(2026, 3, 10)
DAYS = [DAY + timedelta(days=n) for n in (-1, 0, 1)]
SMALL = ("scratch_usage", "nodes")
Rows = list[tuple]


def land_company(root: Path) -> Workspace:
    workspace = make_workspace(root)
    land_again(workspace)
    return workspace


def land_again(workspace: Workspace, *sources: str) -> None:
    for source in load_sources(workspace.sources_file, workspace.data):
        if not sources or source.name in sources:
            land(source, DAYS[0], DAYS[-1] + timedelta(days=1), workspace.data)


def small_copy(workspace: Workspace, root: Path) -> Workspace:
    """Two sources of it are enough for most tests: the emulator takes its time for each table."""
    shutil.copytree(workspace.sources_file.parent, root, dirs_exist_ok=True)
    forget_undeclared(root / "data", SMALL)
    return Workspace(root / "sources.yml", root / "seeds", root / "data")


def rows_here(workspace: Workspace, table: str, days: Sequence[date]) -> Rows:
    folders = ["date=*"] if table in WHOLE_TABLES else [f"date={day}" for day in days]
    landing = workspace.data / "landing" / table
    files = [str(file) for folder in folders for file in landing.glob(f"{folder}/*.parquet")]
    if not files:
        return []
    names = ", ".join(f'"{name}"' for name in SCHEMAS[table].names)
    with duckdb.connect(config={"threads": 1}) as con:
        con.execute("set TimeZone = 'UTC'")
        return ordered(con.execute(f"select {names} from read_parquet($files)", {"files": files}).fetchall())


def rows_there(settings: BigQuerySettings, table: str) -> Rows:
    found = client(settings).query(f"select {columns(table)} from `{settings.landing}.{table}`").result()
    return ordered(tuple(row) for row in found)


def ordered(rows) -> Rows:
    return sorted(rows, key=repr)


def differing(
    workspace: Workspace,
    settings: BigQuerySettings,
    days: Sequence[date],
    tables: Sequence[str] = ("storage_usage", "node_inventory", LANDINGS),
) -> list[str]:
    """The tables that do not hold the same rows on both sides, all columns compared; of a small copy, what it has."""
    return [table for table in tables if rows_here(workspace, table, days) != rows_there(settings, table)]
