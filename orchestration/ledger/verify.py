"""Whether closed months are still what they were: the chain of the ledger, and every copy of its lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from orchestration.landing.schemas import CLOSED_LINES_SCHEMA
from orchestration.ledger.book import as_text, broken_links, closes
from orchestration.warehouse.target import NothingBuilt, reading
from orchestration.workspace import DUCKDB, Workspace

COLUMNS = [name for name in CLOSED_LINES_SCHEMA.names if name != "date"]
SHOWN = 3


def verify(workspace: Workspace) -> list[str]:
    """Everything that is not as it was closed; empty if all is well. The caller holds the writer's lock."""
    found = broken_links(workspace.data)
    ledger = Counter(_line(row) for close in closes(workspace.data) for row in close.lines)
    copies: dict[str, Path | None] = {"the warehouse": None}
    if workspace.target == DUCKDB:
        copies["the published marts"] = workspace.published / "marts.duckdb"
    for name, file in copies.items():
        try:
            with reading(workspace, file) as ask:
                rows = ask.named(f"select {', '.join(COLUMNS)} from core.fct_invoice_lines")
        except NothingBuilt:
            if ledger and file is None:
                found.append("the warehouse does not hold the closed months: run `apportion run` for any day")
            continue
        found += _differences(name, ledger, Counter(_line(row) for row in rows))
    return found


def _differences(copy: str, ledger: Counter, there: Counter) -> Iterator[str]:
    for lines, wrong in (
        (list((ledger - there).elements()), "is missing or was changed"),
        (list((there - ledger).elements()), "was never closed like this"),
    ):
        for line in lines[:SHOWN]:
            shown = dict(zip(COLUMNS, line, strict=True))
            yield (
                f"{copy}: {shown['invoice_id']} {shown['project_id'] or '–'} {shown['component']}"
                f" {shown['allocation_kind']}, {shown['amount']} {shown['currency']}, {wrong}"
            )
        if len(lines) > SHOWN:
            yield f"{copy}: and {len(lines) - SHOWN} more"


def _line(row: Mapping) -> tuple[str, ...]:
    return tuple(_plain(row.get(name), name) for name in COLUMNS)


def _plain(value: object, name: str) -> str:
    """The ledger has text and the warehouse has types; times are compared as instants."""
    if name == "closed_at" and value:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    return as_text(value)
