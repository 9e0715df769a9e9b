"""Which built days no longer match their inputs or their policy."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import duckdb

from orchestration.dbt import Window, build, scratch_warehouse
from orchestration.warehouse.target import NothingBuilt, reading
from orchestration.workspace import DUCKDB, Workspace

Hashes = dict[date, tuple[str, str]]
"""Of each day, the hashes of its policy rows and of its records."""


def stored_hashes(workspace: Workspace) -> Hashes:
    """Of every built day, what it was built from. Waits for a run that is writing: DuckDB would refuse one of both."""
    try:
        with workspace.writing(), reading(workspace) as ask:
            rows = ask("select usage_date, policy_hash, input_hash from core.fct_days order by usage_date")
    except NothingBuilt:
        return {}
    return {day: (policy, inputs) for day, policy, inputs in rows}


def current_hashes(workspace: Workspace, days: Iterable[date]) -> Hashes:
    """What the days would be built from now, worked out with the very models that store it, in a scratch warehouse."""
    wanted = set(days)
    workspace = workspace.on(DUCKDB)  # here and at once, wherever the books are: equal rows have equal hashes
    with scratch_warehouse(workspace, "status") as scratch:
        window = Window(min(wanted), date.fromordinal(max(wanted).toordinal() + 1))
        build(workspace, window, select="+int_days", tests=False, warehouse=scratch)
        with duckdb.connect(str(scratch), read_only=True) as connection:
            found = connection.execute(
                "select usage_date, policy_hash, input_hash from intermediate.int_days"
            ).fetchall()
    return {day: (policy, inputs) for day, policy, inputs in found if day in wanted}


def stale_days(workspace: Workspace, stored: Hashes) -> list[date]:
    """Of the stored days, those that would be built from something else now."""
    current = current_hashes(workspace, stored)
    return [day for day, hashes in stored.items() if current.get(day) != hashes]
