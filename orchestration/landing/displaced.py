"""Days of records that a changed file replaces, or brings back, where they reach beyond the file's own days.

A corrected record may end days before the one it replaces, and a restated week may drop a credit that was
spread over the whole month: on those days something changes though the changed file has nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed
from orchestration.landing.claims import Claim, restated
from orchestration.landing.index import Index
from orchestration.landing.spans import ONE_DAY, Span, overlaps
from orchestration.landing.stage import KEYS, begin, other_versions, read_files

ANY_DAY: Span = (date.min, date.max)


def displaced_days(
    con: DuckDBPyConnection,
    feed: Feed,
    deliveries: list[Delivery],
    index: Index,
    changed: set[int],
    claims: Sequence[tuple[datetime, Claim]],
) -> list[Span]:
    """Days of records in unchanged files that have to give way to `changed` files, or get their place back.

    `claims` are the windows that the changed (and the removed) files are or were complete for.
    """
    unchanged = set(range(len(deliveries))) - changed
    if feed.table in KEYS and changed and unchanged:
        load = begin(con, feed, deliveries, index)
        read_files(con, load, sorted(changed), index)
        read_files(con, load, sorted(other_versions(con, load, ANY_DAY, unchanged)), index)
        ranks = ", ".join(map(str, sorted(changed)))
        same = " and ".join(f"s.{column} is not distinct from n.{column}" for column in KEYS[feed.table])
        gives_way = f"exists (from {load.stage} as n where n.rank in ({ranks}) and {same})"
        return _days(con, f"select * from {load.stage} as s where s.rank not in ({ranks}) and {gives_way}")
    if feed.table == "charges" and claims and unchanged:
        load = begin(con, feed, deliveries, index)
        older = [
            rank
            for rank in sorted(unchanged)
            if any(
                deliveries[rank].delivered_at < at and overlaps(load.known(rank).days, claim.span)
                for at, claim in claims
            )
        ]
        read_files(con, load, older, index)
        # Of which stream a removed file was is not known any more: a day too many does no harm.
        known = [c.claims if c else () for c in load.coverage]
        gone = restated(con, deliveries, known, [(at, None, claim) for at, claim in claims], feed.stream)
        return _days(con, f"select * from {load.stage} as s where {gone}")
    return []


def _days(con: DuckDBPyConnection, records: str) -> list[Span]:
    found = con.execute(
        f"""
        with records as ({records})
        select distinct first_day, last_day from records
        union
        select distinct also_first_day, also_last_day from records where also_first_day is not null
        """
    ).fetchall()
    return [(first, last + ONE_DAY) for first, last in found]
