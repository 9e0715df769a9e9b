"""Reading the deliveries of one feed: records to a staging table, bad rows aside, coverage to the index.

`gpu_samples` is not staged: its rows stay in the delivered Parquet files and only their counts by day are
taken, so that tens of millions of them are copied once (to the landing) and not twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.landing.index import Coverage, Index
from orchestration.landing.quarantine import MOST_KEPT, BadRow
from orchestration.landing.schemas import TABLES, LandingTable, sql_type
from orchestration.landing.spans import FOREVER, ONE_DAY, Span, contains, merge, overlaps

NOT_STAGED = {"gpu_samples"}
KEYS = {
    # A controller may start a pod of the same name again: only its start tells the two apart.
    "jobs": ("job_key", "part_id", "start_at"),
    "node_events": ("cluster_id", "node_name", "start_at"),
    "reservations": ("cluster_id", "reservation_name", "start_at"),
    "license_usage": ("product", "user_name", "account", "host_name", "checked_out_at"),
}
"""Tables whose records have an identity that later deliveries repeat. Every key holds the record's start, so
all versions of a record lie in files that cover the day on which it started."""


@dataclass
class FeedLoad:
    """The deliveries of one feed and what has been read of them. A delivery's rank is its place by age."""

    feed: Feed
    deliveries: list[Delivery]
    coverage: list[Coverage | None]
    counts: Counter[int] = field(default_factory=Counter)
    bad: Counter[int] = field(default_factory=Counter)
    skipped: Counter[int] = field(default_factory=Counter)
    bad_rows: dict[int, list[BadRow]] = field(default_factory=dict)
    """Of every file that was opened, even if only to learn what it covers."""
    day_rows: Counter[tuple[int, date]] = field(default_factory=Counter)
    """Good rows by rank and day, for tables that are not staged."""
    relevant: set[int] = field(default_factory=set)
    """Files with a say in the window; their bad rows count against the source."""
    notes: Counter[str] = field(default_factory=Counter)

    @property
    def table(self) -> LandingTable:
        return TABLES[self.feed.table]

    @property
    def stage(self) -> str:
        return f"stage_{self.feed.table}"

    def known(self, rank: int) -> Coverage:
        coverage = self.coverage[rank]
        if coverage is None:
            raise LookupError(f"{self.deliveries[rank].path} has not been read")
        return coverage


def begin(con: DuckDBPyConnection, feed: Feed, deliveries: list[Delivery], index: Index) -> FeedLoad:
    """Nothing read yet, but what the index knows is known."""
    load = FeedLoad(feed, deliveries, [index.get(feed.table, delivery) for delivery in deliveries])
    if feed.table not in NOT_STAGED:
        con.execute(f"create or replace temp table {load.stage} ({_stage_columns(load.table)})")
    return load


def load_feed(con: DuckDBPyConnection, feed: Feed, deliveries: list[Delivery], window: Span, index: Index) -> FeedLoad:
    """Reads what has a say in the window, and what is not yet known to have none."""
    load = begin(con, feed, deliveries, index)
    candidates = range(len(deliveries))
    if feed.table == "node_inventory":
        candidates = candidates[-1:]  # each one is complete, so the newest is all there is
    first = [r for r in candidates if load.coverage[r] is None or overlaps(load.known(r).days, window)]
    read_files(con, load, first, index)
    load.relevant = {r for r in first if overlaps(load.known(r).days, window)}
    unneeded = set(first) - load.relevant
    if feed.table in KEYS:
        older = other_versions(con, load, window, set(candidates) - load.relevant)
        unread = sorted(older - unneeded)
        read_files(con, load, unread, index)
        unneeded -= older
    _drop(con, load, unneeded)
    index.keep_only(feed.table, deliveries)
    return load


def learn_coverage(con: DuckDBPyConnection, feed: Feed, deliveries: list[Delivery], index: Index) -> list[Coverage]:
    """Which days each delivery touches; opens only the files that the index does not know."""
    load = begin(con, feed, deliveries, index)
    read_files(con, load, [rank for rank, coverage in enumerate(load.coverage) if coverage is None], index)
    index.keep_only(feed.table, deliveries)
    return [load.known(rank) for rank in range(len(deliveries))]


def _stage_columns(table: LandingTable) -> str:
    content = ", ".join(f'"{name}" {sql_type(table.schema.field(name).type)}' for name in table.content)
    return (
        f"{content}, rank bigint, delivery varchar, line bigint, delivered_at timestamptz,"
        " first_day date, last_day date, also_first_day date, also_last_day date"
    )


def _day_columns(table: LandingTable) -> str:
    """The days of a record, both ends included; no last day: it has no end."""
    ends = f"coalesce({table.ends}, as_of_at)" if "as_of_at" in table.content else table.ends
    also = "null, null"
    if table.name == "charges":
        # What is not usage may be spread over its billing period, so those days need it too.
        period = "billing_period_start_at", "billing_period_end_at"
        also = ", ".join(
            f"case when charge_category <> 'Usage' then {bound} end"
            for bound in (f"cast({period[0]} as date)", _last_day(*period))
        )
    return f"cast({table.starts} as date), {_last_day(table.starts, ends)}, {also}"


def _last_day(start: str, end: str) -> str:
    """Half-open: what ends at midnight does not touch the next day; what has no length is where it starts."""
    return f"cast(case when {end} > {start} then {end} - interval 1 microsecond else {end} end as date)"


def read_files(con: DuckDBPyConnection, load: FeedLoad, ranks: Sequence[int], index: Index) -> None:
    if not ranks:
        return
    chosen = [load.deliveries[rank] for rank in ranks]
    register_deliveries(con, chosen, ranks)
    reading = load.feed.read(con, chosen)
    load.notes.update(reading.notes)
    for file, rank in enumerate(ranks):
        load.counts[rank] = reading.counts[file]
        load.bad_rows[rank] = []
    for reject in reading.rejects:
        rank = ranks[reject.file]
        load.bad[rank] += 1
        if len(load.bad_rows[rank]) < MOST_KEPT:
            load.bad_rows[rank].append(BadRow(reject.line, reject.reason, reject.raw))
    found = _count_days(con, load, reading) if load.feed.table in NOT_STAGED else _stage(con, load, reading)
    for rank in ranks:
        load.bad_rows[rank].sort(key=lambda row: row.line)
        delivery = load.deliveries[rank]
        coverage = _coverage(delivery, found.get(rank, []), _billing_span(con, load, rank))
        load.coverage[rank] = coverage
        index.put(load.feed.table, delivery, coverage)


def register_deliveries(con: DuckDBPyConnection, chosen: Sequence[Delivery], ranks: Sequence[int]) -> None:
    """The temp table `deliveries`, which connectors join to learn when their files came."""
    facts = pa.table(
        {
            "file": pa.array(range(len(chosen)), pa.int64()),
            "rank": pa.array(ranks, pa.int64()),
            "name": pa.array([delivery.name for delivery in chosen], pa.string()),
            "delivered_at": pa.array([d.delivered_at for d in chosen], pa.timestamp("us", tz="UTC")),
        }
    )
    con.register("delivery_facts", facts)
    con.execute("create or replace temp table deliveries as from delivery_facts")
    con.unregister("delivery_facts")


def _stage(con: DuckDBPyConnection, load: FeedLoad, reading: Reading) -> dict[int, list[Span]]:
    con.execute(f"create or replace temp table read_rows as {reading.rows}")
    content = ", ".join(f'r."{name}"' for name in load.table.content)
    con.execute(
        f"""
        insert into {load.stage}
        select {content}, d.rank, d.name, r.line, d.delivered_at, {_day_columns(load.table)}
        from read_rows as r join deliveries as d using (file)
        where r.bad_reason is null and r.skip_reason is null
        """
    )
    _take_bad(con, load, "read_rows")
    for rank, skipped in con.execute(
        "select rank, count(distinct line) from read_rows join deliveries using (file)"
        " where bad_reason is null and skip_reason is not null group by rank"
    ).fetchall():
        load.skipped[rank] = skipped
    con.execute("drop table read_rows")
    found: dict[int, list[Span]] = {}
    for rank, start, last in con.execute(
        f"""
        select distinct rank, first_day, last_day from {load.stage}
        where rank in (select rank from deliveries)
        union
        select distinct rank, also_first_day, also_last_day from {load.stage}
        where rank in (select rank from deliveries) and also_first_day is not null
        """
    ).fetchall():
        found.setdefault(rank, []).append((start, FOREVER if last is None else last + ONE_DAY))
    return found


def _count_days(con: DuckDBPyConnection, load: FeedLoad, reading: Reading) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    ranks = dict(con.execute("select file, rank from deliveries").fetchall())
    for file, day in reading.proven.items():
        load.day_rows[ranks[file], day] = reading.counts[file]
        found[ranks[file]] = [(day, day + ONE_DAY)]
    doubtful = [file for file in ranks if file not in reading.proven]
    if not doubtful:
        return found
    has_bad = False
    for file, is_bad, day, rows in con.execute(
        f"""
        select file, bad_reason is not null as is_bad,
            case when not is_bad then cast({load.table.starts} as date) end as day, count(*) as rows
        from ({reading.rows}) where file in ({", ".join(map(str, doubtful))})
        group by all
        """
    ).fetchall():
        has_bad |= is_bad
        if not is_bad:
            load.day_rows[ranks[file], day] = rows
            found.setdefault(ranks[file], []).append((day, day + ONE_DAY))
    if has_bad:
        _take_bad(con, load, f"({reading.rows})")
    return found


def _take_bad(con: DuckDBPyConnection, load: FeedLoad, rows: str) -> None:
    con.execute(
        "create or replace temp table bad_rows as select rank, line, min(bad_reason) as reason"
        f" from {rows} join deliveries using (file) where bad_reason is not null group by rank, line"
    )
    for rank, total in con.execute("select rank, count(*) from bad_rows group by rank").fetchall():
        load.bad[rank] += total
    for rank, line, reason in con.execute(
        "select rank, line, reason from bad_rows"
        f" qualify row_number() over (partition by rank order by line) <= {MOST_KEPT}"
    ).fetchall():
        load.bad_rows[rank].append(BadRow(line, reason))


def _coverage(delivery: Delivery, found: list[Span], billing: Span | None) -> Coverage:
    claims = delivery.declared or billing
    days = merge([*found, *([claims] if claims else [])])
    if not days:
        # Nothing but bad rows: the day of the delivery is the one on which somebody will look.
        day = delivery.delivered_at.date()
        days = [(day, day + ONE_DAY)]
    return Coverage(days, claims)


def _billing_span(con: DuckDBPyConnection, load: FeedLoad, rank: int) -> Span | None:
    """A bill that declares no window is complete for the billing periods that it has lines of."""
    if load.feed.table != "charges" or load.deliveries[rank].declared:
        return None
    first, last = con.execute(
        "select cast(min(billing_period_start_at) as date), cast(max(billing_period_end_at) as date)"
        f" from {load.stage} where rank = {rank}"
    ).fetchall()[0]
    return (first, last) if first else None


def other_versions(con: DuckDBPyConnection, load: FeedLoad, window: Span, others: set[int]) -> set[int]:
    """Files that may hold another version of a record that is in the window.

    The newest version decides, also where it says that the record ended before the window.
    """
    if not others:
        return set()
    starts = con.execute(
        f"select distinct first_day from {load.stage} where first_day < ? and coalesce(last_day, first_day) >= ?",
        [window[1], window[0]],
    ).fetchall()
    return {r for r in others if any(contains(load.known(r).days, day) for (day,) in starts)}


def _drop(con: DuckDBPyConnection, load: FeedLoad, ranks: set[int]) -> None:
    if not ranks:
        return
    if load.feed.table not in NOT_STAGED:
        con.execute(f"delete from {load.stage} where rank in ({', '.join(map(str, sorted(ranks)))})")
    for rank in ranks:
        for counter in (load.counts, load.skipped):
            del counter[rank]
    for rank, day in [key for key in load.day_rows if key[0] in ranks]:
        del load.day_rows[rank, day]
