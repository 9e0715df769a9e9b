"""Snapshots of `lmstat -a`: who has which feature out now, and since when.

A seat that is in a snapshot is out from its start until the snapshot; a later snapshot that still has it says more of
the same record. So seats are known up to the last snapshot that showed them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found, Reject
from orchestration.connectors.license.flexnet import zone_of
from orchestration.connectors.sql import literal
from orchestration.connectors.tables import PACKED
from orchestration.connectors.text import load_lines, packing
from orchestration.settings import SeatsSource

STATUS = r"license manager status on \w+ ([0-9]+/[0-9]+/[0-9]+ [0-9]+:[0-9]+)"
FEATURE = r"(?i)^\s*users of (.+?):"
SEAT = (
    r"^\s*(\S+)\s+(\S+)\s.*\(v[^)]*\)\s+\([^)]*\),\s+start \w+ ([0-9]+/[0-9]+ [0-9]+:[0-9]+)"
    r"(?:,\s*([0-9]+) licenses?)?"
)


def begins(line: str) -> bool:
    return (
        re.match(r"\s*(lmstat|lmutil) - |\s*Flexible License Manager status|\s*Users of ", line, re.IGNORECASE)
        is not None
    )


def load(
    con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SeatsSource
) -> tuple[str, list[int], list[Found], list[Reject]]:
    zone = zone_of(deliveries[0], source)
    _, counts = load_lines(con, "lmstat_lines", deliveries, header=False)
    con.execute(f"create or replace temp table lmstat_seats as {_seats(deliveries, zone)}")
    found = [Found(f"{PACKED[packing(d.path)]}lmstat snapshots, times of {zone}") for d in deliveries]
    return _rows(), counts, found, []


def _seats(deliveries: Sequence[Delivery], zone: str) -> str:
    """Every line with its snapshot and feature, and its seat if it has one.

    A start has no year: it is the last one before the snapshot.
    """
    log = "partition by file order by line"
    local_zone = literal(zone)
    delivered = " ".join(f"when {file} then timestamptz '{d.delivered_at}'" for file, d in enumerate(deliveries))
    this_year = "try_strptime(seat.started || ' ' || year(seen), '%m/%d %H:%M %Y')"
    return f"""
        select *, timezone({local_zone}, case
                when {this_year} > seen + interval 1 day
                    then try_strptime(seat.started || ' ' || (year(seen) - 1), '%m/%d %H:%M %Y')
                else {this_year}
            end) as started_at,
            timezone({local_zone}, printed) as seen_at
        from (
            select *, count(status) over ({log}) as snapshot,
                last_value(status ignore nulls) over ({log} rows unbounded preceding) as printed,
                coalesce(printed, timezone({local_zone}, case file {delivered} end)) as seen,
                last_value(nullif(regexp_extract(raw, {literal(FEATURE)}, 1), '') ignore nulls) over (
                    {log} rows unbounded preceding
                ) as product,
                regexp_extract(raw, {literal(SEAT)}, ['user_name', 'host_name', 'started', 'seats']) as seat
            from (
                select *, try_strptime(nullif(regexp_extract(raw, {literal(f"(?i){STATUS}")}, 1), ''), '%m/%d/%Y %H:%M')
                    as status
                from lmstat_lines
            )
        )
    """


def _rows() -> str:
    """Seats that one user took on one host in one minute cannot be told apart later, so they are one record."""
    one = "partition by file, snapshot, product, seat.user_name, seat.host_name, started_at"
    return f"""
        select file, line, product, seat.user_name as user_name, cast(null as varchar) as account,
            seat.host_name as host_name,
            cast(sum(coalesce(try_cast(nullif(seat.seats, '') as bigint), 1)) over ({one}) as bigint) as seats,
            started_at as checked_out_at, cast(null as timestamptz) as checked_in_at,
            seen_at as as_of_at,
            case when started_at is null then 'start is not a time: ' || seat.started end as bad_reason,
            case when started_at is not null and line > min(line) over ({one})
                then 'in the sum of its user, host and minute' end as skip_reason
        from lmstat_seats where seat.user_name <> ''
        union all by name
        select file, line,
            case when contains(raw, ', start ') then 'a seat that cannot be read' end as bad_reason,
            case when bad_reason is null then 'says nothing of a seat' end as skip_reason
        from lmstat_seats where seat.user_name = ''
    """
