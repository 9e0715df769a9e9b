"""FOCUS out: the bill of some days, shared out to teams and projects, as files that FOCUS 1.3 tools read.

The model is built when it is asked for, in a schema that is gone afterwards: a row per bill line, day and payer is more
than the books themselves, and most people never ask for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import duckdb

from orchestration.dbt import Window, build
from orchestration.errors import ApportionError
from orchestration.warehouse.target import reading, require_duckdb
from orchestration.workspace import Workspace

MODEL = "focus_allocations"
SCHEMA = "focus"
FORMATS = {
    # Decimals stay decimals in both: a float would not add up.
    "csv": "format csv, header, timestampformat '%Y-%m-%dT%H:%M:%SZ'",
    "parquet": "format parquet, compression zstd",
}
SHARES_AT_ONCE = 400_000
"""Shares (bill line x pool x component x payer) that one build works out. Twice as many fit into its 400 MB."""


@dataclass(frozen=True)
class FocusFiles:
    files: Sequence[Path]
    rows: int
    totals: dict[str, tuple[Decimal, Decimal]]
    """Per currency what was billed and what it cost, the same in the files and in the books."""


def write_focus(workspace: Workspace, window: Window, formats: Sequence[str] = tuple(FORMATS)) -> FocusFiles:
    """Writes `published/focus/focus_allocations_<from>_<to>.csv` and `.parquet`. Takes the writer's lock itself."""
    require_duckdb(workspace, "FOCUS out")
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or not formats:
        raise ApportionError(
            f"FOCUS out cannot be written as {', '.join(unknown) or 'nothing'}", f"choose from {', '.join(FORMATS)}"
        )
    with workspace.writing():
        _require_built(workspace, window)
        beside = _beside(workspace)
        pieces = beside.data / "pieces"
        shutil.rmtree(pieces, ignore_errors=True)
        pieces.mkdir()
        try:
            for days in _pieces(workspace, window):
                build(beside, days, select=MODEL, tests=False, warehouse=workspace.warehouse)
                _keep_piece(workspace, pieces / f"{days.start}.parquet")
            with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
                warehouse.execute(f"set TimeZone = 'UTC'; create temp view written as from '{pieces}/*.parquet'")
                totals = _tied(warehouse, window)
                (rows,) = warehouse.execute("select count(*) from written").fetchone()
                name = f"{MODEL}_{window.start}_{window.end}"
                files = [_write(warehouse, workspace.published / "focus" / f"{name}.{kind}") for kind in formats]
        finally:
            shutil.rmtree(pieces, ignore_errors=True)
            with duckdb.connect(str(workspace.warehouse)) as warehouse:
                warehouse.execute(f"drop schema if exists {SCHEMA} cascade")
    return FocusFiles(files, rows, totals)


def _require_built(workspace: Workspace, window: Window) -> None:
    with reading(workspace) as ask:
        built = {day for (day,) in ask("select usage_date from core.fct_days")}
    missing = [day for day in window if day not in built]
    if missing:
        raise ApportionError(
            f"the books do not hold {len(missing)} of the {window.days} days, the first is {missing[0]}",
            "run those days first, or ask for days that are built",
        )


def _beside(workspace: Workspace) -> Workspace:
    """The workspace with the models of FOCUS out. It has a folder of its own, so that each project stays parsed."""
    data = workspace.data / "focus"
    data.mkdir(exist_ok=True)
    landing = data / "landing"
    landing.unlink(missing_ok=True)
    landing.symlink_to(workspace.data.resolve() / "landing")
    return replace(workspace, data=data, focus=True)


def _pieces(workspace: Workspace, window: Window) -> Iterator[Window]:
    """The window in parts that fit into memory: a day needs no other day."""
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        shares = dict(
            warehouse.execute(
                """
                select usage_date, sum(lines * payers) as shares
                from (
                    select usage_date, pool_id, component, currency, count(*) as lines
                    from core.fct_billed_costs group by all
                ) inner join (
                    select usage_date, pool_id, component, currency, count(distinct (team_id, project_id)) as payers
                    from core.fct_cost_allocations group by all
                ) using (usage_date, pool_id, component, currency)
                where usage_date >= ? and usage_date < ?
                group by usage_date
                """,
                [window.start, window.end],
            ).fetchall()
        )
    start, held = window.start, 0
    for day in window:
        if held and held + shares.get(day, 0) > SHARES_AT_ONCE:
            yield Window(start, day)
            start, held = day, 0
        held += shares.get(day, 0)
    yield Window(start, window.end)


def _keep_piece(workspace: Workspace, piece: Path) -> None:
    """In one order, so that the same books give the same file. Of a time without a zone a reader of Parquet would have
    to know that it is UTC."""
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        columns = warehouse.execute(f"select column_name, column_type from (describe {SCHEMA}.{MODEL})").fetchall()
        zoned = ", ".join(f"timezone('UTC', {name}) as {name}" for name, kind in columns if kind == "TIMESTAMP")
        warehouse.execute(
            f"""
            copy (
                select * replace ({zoned}) from {SCHEMA}.{MODEL}
                order by x_UsageDate, x_ChargeId, x_TeamId nulls first, x_ProjectId nulls first
            ) to '{piece}' (format parquet)
            """
        )


def _tied(warehouse: duckdb.DuckDBPyConnection, window: Window) -> dict[str, tuple[Decimal, Decimal]]:
    """What was written per currency, once it is known to be what the books hold.

    Lines and their costs come from the books, the rest of a line from what is landed: a line that a newer bill has
    replaced since would be missing.
    """
    rows = warehouse.execute(
        """
        select currency, sum(billed), sum(effective), sum(booked_billed), sum(booked_effective)
        from (
            select BillingCurrency as currency, BilledCost as billed, EffectiveCost as effective,
                0 as booked_billed, 0 as booked_effective
            from written
            union all
            select currency, 0, 0, billed_cost, effective_cost from core.fct_billed_costs
            where usage_date >= ? and usage_date < ?
        ) group by currency order by currency
        """,
        [window.start, window.end],
    ).fetchall()
    for currency, billed, effective, booked_billed, booked_effective in rows:
        if (billed, effective) != (booked_billed, booked_effective):
            raise ApportionError(
                f"FOCUS out does not tie to the books: {currency} {billed} of {booked_billed} billed,"
                f" {effective} of {booked_effective} effective",
                "bills of these days have been landed again since they were run: run those days and ask again",
            )
    return {currency: (billed, effective) for currency, billed, effective, *_ in rows}


def _write(warehouse: duckdb.DuckDBPyConnection, target: Path) -> Path:
    """Whole, or as it was before."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}.tmp-{os.getpid()}")
    for leftover in target.parent.glob("*.tmp-*"):
        leftover.unlink()
    warehouse.execute(f"copy (from written) to '{beside}' ({FORMATS[target.suffix.removeprefix('.')]})")
    beside.replace(target)
    return target
