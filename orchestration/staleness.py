"""Which built days no longer match their inputs or their policy."""

from __future__ import annotations

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


def stale_days(workspace: Workspace, stored: Hashes) -> list[date]:
    """Works out today's hashes of the days with the very models that stored them, in a scratch warehouse."""
    workspace = workspace.on(DUCKDB)  # here and at once, wherever the books are: equal rows have equal hashes
    with scratch_warehouse(workspace, "status") as scratch:
        window = Window(min(stored), date.fromordinal(max(stored).toordinal() + 1))
        build(workspace, window, select="+int_days", tests=False, warehouse=scratch)
        with duckdb.connect(str(scratch), read_only=True) as connection:
            current = {
                day: (policy, inputs)
                for day, policy, inputs in connection.execute(
                    "select usage_date, policy_hash, input_hash from intermediate.int_days"
                ).fetchall()
            }
    return [day for day, hashes in stored.items() if current.get(day) != hashes]
