"""Daily storage readings per path and owner: filesystem,path,owner,group,bytes,date."""

from __future__ import annotations

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.sql import day, first_reason, literal, missing, unreadable, whole
from orchestration.connectors.text import load_csv
from orchestration.settings import StorageSource

REQUIRED = ("filesystem", "path", "bytes", "date")
OPTIONAL = ("owner", "group")


def feeds(source: StorageSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        counts, rejects = load_csv(con, "storage_lines", deliveries, REQUIRED, OPTIONAL)
        return Reading(_select(), counts, rejects)

    return [Feed("storage_usage", source.path, read)]


def _select() -> str:
    reason = first_reason(
        missing("l.filesystem", "filesystem"),
        missing("l.path", "path"),
        missing("l.bytes", "bytes"),
        unreadable("l.bytes", "stored_bytes", "bytes", "a whole number"),
        ("stored_bytes < 0", literal("bytes is negative")),
        missing("l.date", "date"),
        unreadable("l.date", "measured_on", "date", "a date"),
    )
    return f"""
        select
            l.file,
            l.line,
            {day("l.date")} as measured_on,
            l.filesystem as filesystem,
            l.path as path,
            l.owner as owner,
            l."group" as account,
            {whole("l.bytes")} as stored_bytes,
            cast(measured_on as timestamptz) as valid_from_at,
            cast(measured_on + 1 as timestamptz) as valid_to_at,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from storage_lines as l
    """
