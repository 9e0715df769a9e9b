"""How many bytes BigQuery would bill for each column of each table and day, measured on the same rows here.

BigQuery bills logical bytes: a fixed number per value of a type, two more than its UTF-8 bytes for a text, nothing for
a missing value. Compression, here or there, makes no difference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

import duckdb

from orchestration.connectors.sql import literal
from orchestration.dbt import Window
from orchestration.errors import ApportionError
from orchestration.estimate.queries import LANDING, Plan, Table, lasting, partition
from orchestration.estimate.scans import Days
from orchestration.landing.days import SCHEMA_DAY, landed_days
from orchestration.workspace import Workspace

WIDTHS = {
    "INT64": 8,
    "FLOAT64": 8,
    "BOOL": 1,
    "DATE": 8,
    "TIMESTAMP": 8,
    "DATETIME": 8,
    "TIME": 8,
    "NUMERIC": 16,
    "BIGNUMERIC": 32,
}
TEXT_OVERHEAD = 2
AVERAGED_OVER = 7
"""Where a day of the window is not there yet, the mean of this many newest days stands in: a week has every weekday."""

Part = date | None
"""The first day of a partition; None for a table that has none."""
Bytes = Mapping[Part, Mapping[str, int]]
"""By partition and column."""


@dataclass(frozen=True)
class Sizes:
    bytes: Mapping[str, Bytes]
    """By the full name of the table on BigQuery."""
    averaged: Mapping[str, Collection[date]] = field(default_factory=dict)
    """Days of the window that are not `landed` or not `built` here: the mean of the newest days stands in for them."""
    unknown: Collection[str] = ()
    """Tables that were never made here, so that nothing is known of their size."""
    empty: Collection[str] = ()
    """Tables that hold no row on the days that are read."""


def measured(workspace: Workspace, window: Window, plan: Plan) -> Sizes:
    """The sizes of what the plan reads, and of nothing else."""
    landed = landed_days(workspace.data)
    if not landed:
        raise ApportionError(
            f"nothing is landed in {workspace.data}, so there is nothing to measure",
            "run some days first: apportion run --from <day> --to <day>",
        )
    found: dict[str, Bytes | None] = {}
    with _held_still(workspace) as here:
        for relation, (columns, days) in _wanted(plan).items():
            table = plan.tables[relation]
            if table.layer == LANDING:
                found[relation] = _landed(here.con, workspace.data, table, columns, days, window, landed)
            else:
                found[relation] = _built(here, table, columns, days, window)
    missing = {"landed": landed, "built": here.days or set(window)}
    known = {relation: sizes for relation, sizes in found.items() if sizes is not None}
    return Sizes(
        known,
        {what: sorted(set(window) - days) for what, days in missing.items() if set(window) - days},
        unknown=sorted(str(plan.tables[relation]) for relation in found.keys() - known.keys()),
        empty=sorted(str(plan.tables[relation]) for relation, sizes in known.items() if not sizes),
    )


def _wanted(plan: Plan) -> dict[str, tuple[set[str], list[Days]]]:
    """The columns and days of each table that any query reads."""
    wanted: dict[str, tuple[set[str], list[Days]]] = {}
    for read in (read for step in plan.steps for query in step.queries for read in query):
        columns, days = wanted.setdefault(lasting(read.relation), (set(), []))
        columns.update(read.columns)
        days.append(read.days)
    return wanted


# --- what was landed ---------------------------------------------------------------------------------------


def _landed(
    con: duckdb.DuckDBPyConnection,
    data: Path,
    table: Table,
    columns: Collection[str],
    days: list[Days],
    window: Window,
    landed: set[date],
) -> Bytes:
    folders = {
        date.fromisoformat(folder.name.removeprefix("date=")): folder
        for folder in (data / "landing" / table.name).glob("date=*")
        if folder.name != SCHEMA_DAY
    }

    def of(chosen: Iterable[date]) -> Bytes:
        files = [str(file) for day in chosen if day in folders for file in sorted(folders[day].glob("*.parquet"))]
        if not files:
            return {}
        # The date is the folder's name, of which some files hold a copy.
        source = f"read_parquet([{', '.join(map(literal, files))}], hive_partitioning = true)"
        return _summed(con, source, table, columns)

    if not table.partition_column:
        return of(folders)
    exact = of(sorted(day for day in folders if _any_holds(days, day)))
    return {**exact, **_stand_ins(of, table, days, window, landed)}


# --- what was built ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Warehouse:
    """What is known of the DuckDB warehouse as a whole."""

    con: duckdb.DuckDBPyConnection
    columns: Mapping[tuple[str, str], set[str]]
    """By schema and table."""
    days: set[date]
    """Those of the facts."""
    days_at_hand: int
    """How many days the tables before the facts hold: those of the last window."""


@contextlib.contextmanager
def _held_still(workspace: Workspace) -> Iterator[_Warehouse]:
    """The warehouse while nobody writes; an empty one if there is none yet."""
    exists = workspace.warehouse.exists()
    with (
        workspace.writing(),
        duckdb.connect(str(workspace.warehouse) if exists else ":memory:", read_only=exists) as con,
    ):
        columns: dict[tuple[str, str], set[str]] = {}
        named = "select table_schema, table_name, column_name from information_schema.columns"
        for schema, table, column in con.execute(named).fetchall():
            columns.setdefault((schema, table), set()).add(column)

        def days(schema: str, table: str) -> set[date]:
            if (schema, table) not in columns:
                return set()
            return {day for (day,) in con.execute(f"select distinct usage_date from {schema}.{table}").fetchall()}

        yield _Warehouse(con, columns, days("core", "fct_days"), len(days("intermediate", "int_days")))


def _built(here: _Warehouse, table: Table, columns: Collection[str], days: list[Days], window: Window) -> Bytes | None:
    """None: the table was never made, or by a version of the models that had other columns."""
    if not set(columns) <= here.columns.get((table.layer, table.name), set()):
        return None
    name = f'{table.layer}."{table.name}"'
    if table.is_windowed:
        sizes = _summed(here.con, name, table, columns)
        return _scaled(sizes, window.days / here.days_at_hand) if here.days_at_hand else None
    if not table.partition_column:
        return _summed(here.con, name, table, columns)
    if not here.days:
        return None

    def of(parts: Iterable[date]) -> Bytes:
        listed = ", ".join(f"date '{part}'" for part in parts)
        chosen = f"(from {name} where {table.partition_column} in ({listed}))"
        return _summed(here.con, chosen, table, columns) if listed else {}

    parts = {partition(table, day) for day in here.days}
    exact = of(sorted(part for part in parts if _any_holds(days, part)))
    return {**exact, **_stand_ins(of, table, days, window, parts)}


def _scaled(sizes: Bytes, factor: float) -> Bytes:
    return {part: {name: round(size * factor) for name, size in columns.items()} for part, columns in sizes.items()}


# --- both --------------------------------------------------------------------------------------------------


def _any_holds(days: Iterable[Days], part: date) -> bool:
    return any(start <= part < end for start, end in days)


Measure = Callable[[Iterable[date]], Bytes]
"""Measures some partitions of a table."""


def _stand_ins(of: Measure, table: Table, days: list[Days], window: Window, held: set[date]) -> Bytes:
    """For partitions of the window that are read and not there yet: the mean of the newest ones."""
    expected = {partition(table, day) for day in window}
    missing = [part for part in expected - held if _any_holds(days, part)]
    if not missing or not held:
        return {}
    newest = sorted(held)[-AVERAGED_OVER:]
    sums: dict[str, int] = {}
    for columns in of(newest).values():
        for name, size in columns.items():
            sums[name] = sums.get(name, 0) + size
    mean = {name: round(size / len(newest)) for name, size in sums.items()}
    return dict.fromkeys(missing, mean) if mean else {}


def _summed(con: duckdb.DuckDBPyConnection, source: str, table: Table, columns: Collection[str]) -> Bytes:
    """One pass over the rows: the bytes of each column, by partition."""
    names = sorted(columns)
    part = table.partition_column or "cast(null as date)"
    sums = ", ".join(f"coalesce({_bytes(name, table.types[name])}, 0)" for name in names)
    rows = con.execute(f"select {part}, {sums or 0} from {source} group by 1").fetchall()
    return {row[0]: dict(zip(names, map(int, row[1:]), strict=False)) for row in rows}


def _bytes(column: str, kind: str) -> str:
    """The logical bytes of a column, as an expression over its rows."""
    if kind in WIDTHS:
        return f'count("{column}") * {WIDTHS[kind]}'
    return f'sum({TEXT_OVERHEAD} + strlen(cast("{column}" as varchar)))'
