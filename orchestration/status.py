"""The state of a workspace: what is loaded, what is stale, what is quarantined, does it reconcile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import duckdb
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from orchestration.landing import quarantine
from orchestration.landing.days import landed_days
from orchestration.ledger.printing import print_open_true_ups
from orchestration.partitions import windows_of
from orchestration.settings import load_sources
from orchestration.staleness import stale_days, stored_hashes
from orchestration.summary import print_closing_lines
from orchestration.warehouse.target import reading
from orchestration.workspace import Workspace


def show_status(workspace: Workspace, console: Console) -> None:
    sources = load_sources(workspace.sources_file, workspace.data)
    landed = _landed(workspace)
    table = Table(title=f"Sources of {workspace.sources_file}", title_justify="left", box=SIMPLE_HEAD)
    for column in ("source", "kind", "days", "newest", "rows", "quarantined"):
        table.add_column(column, justify="left" if column in ("source", "kind") else "right", no_wrap=True)
    set_aside = quarantine.summary(workspace.data)
    for source in sources:
        days, newest, rows = landed.get(source.name, (0, None, 0))
        bad = sum(set_aside.get(source.name, {}).values())
        table.add_row(
            source.name, source.kind, f"{days:,}", str(newest or "–"), f"{rows:,}", f"{bad:,}" if bad else "–"
        )
    console.print(table)
    if set_aside:
        console.print(f"quarantined rows, with file, line and reason: {workspace.data / 'quarantine'}", soft_wrap=True)

    stored = stored_hashes(workspace)
    if not stored:
        console.print("nothing is built yet → apportion run --from … --to …")
        return
    built, stale = list(stored), stale_days(workspace, stored)
    console.print(f"built: {_days(built)}")
    console.print(f"stale (inputs or policy changed since): {_days(stale)}" if stale else "stale: none")
    waiting = sorted(landed_days(workspace.data) - set(built))
    if waiting:
        console.print(f"landed but not built: {_days(waiting)}")
    with workspace.writing(), reading(workspace) as ask:
        print_closing_lines(ask, console)
    print_open_true_ups(workspace, console)


def _landings(workspace: Workspace) -> str:
    return f"read_parquet('{workspace.data}/landing/landings/date=*/*.parquet', hive_partitioning = true)"


def _landed(workspace: Workspace) -> dict[str, tuple[int, date, int]]:
    if not (workspace.data / "landing" / "landings").exists():
        return {}
    rows = duckdb.sql(
        f"select source, count(distinct date), max(date), sum(rows) from {_landings(workspace)}"
        " where rows > 0 group by source"
    ).fetchall()
    return {source: (days, newest, total) for source, days, newest, total in rows}


def _days(days: Sequence[date]) -> str:
    if not days:
        return "none"
    windows = windows_of(days)
    shown = ", ".join(
        str(window.start) if window.days == 1 else f"{window.start} up to {window.end}" for window in windows[:6]
    )
    return f"{len(days)} days: {shown}" + (" …" if len(windows) > 6 else "")
