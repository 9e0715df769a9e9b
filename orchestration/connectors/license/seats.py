"""Seats of floating licences: product,user,account,host,seats,checked_out,checked_in."""

from __future__ import annotations

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.sql import backwards, first_reason, literal, missing, unreadable, utc, whole
from orchestration.connectors.text import load_csv
from orchestration.settings import SeatsSource

REQUIRED = ("product", "user", "seats", "checked_out", "checked_in")
OPTIONAL = ("account", "host")


def feeds(source: SeatsSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        counts, rejects = load_csv(con, "seat_lines", deliveries, REQUIRED, OPTIONAL)
        return Reading(_select(), counts, rejects)

    return [Feed("license_usage", source.path, read)]


def _select() -> str:
    reason = first_reason(
        missing("l.product", "product"),
        missing("l.user", "user"),
        missing("l.seats", "seats"),
        unreadable("l.seats", whole("l.seats"), "seats", "a whole number"),
        (f"{whole('l.seats')} < 0", literal("seats is negative")),
        missing("l.checked_out", "checked_out"),
        unreadable("l.checked_out", "checked_out_at", "checked_out", "a time"),
        unreadable("l.checked_in", "checked_in_at", "checked_in", "a time"),
        backwards("checked_out_at", "checked_in_at"),
    )
    return f"""
        select
            l.file,
            l.line,
            l.product as product,
            l.user as user_name,
            l.account as account,
            l.host as host_name,
            {whole("l.seats")} as seats,
            {utc("l.checked_out")} as checked_out_at,
            {utc("l.checked_in")} as checked_in_at,
            case when checked_in_at is null then greatest(d.delivered_at, checked_out_at) end as as_of_at,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from seat_lines as l
        join deliveries as d using (file)
    """
