"""Days of records that a changed file replaces, or brings back, where they reach beyond the file's own days.

A corrected record may end days before the one it replaces, and a restated week may drop a credit that was
spread over the whole month: on those days something changes though the changed file has nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed
from orchestration.landing.index import Index
from orchestration.landing.live import RESTATED, register_claims
from orchestration.landing.spans import ONE_DAY, Span, overlaps
from orchestration.landing.stage import KEYS, begin, other_versions, read_files

ANY_DAY: Span = (date.min, date.max)


def displaced_days(
    con: DuckDBPyConnection,
    feed: Feed,
    deliveries: list[Delivery],
    index: Index,
    changed: set[int],
    claims: Sequence[tuple[datetime, Span]],
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
                deliveries[rank].delivered_at < at and overlaps(load.known(rank).days, claim) for at, claim in claims
            )
        ]
        read_files(con, load, older, index)
        register_claims(con, claims)
        return _days(con, f"select * from {load.stage} as s where exists (from claims as c where {RESTATED})")
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
