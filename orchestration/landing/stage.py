"""Reading the deliveries of one feed: records to a staging table, bad rows aside, coverage to the index.

`gpu_samples` is not staged: its rows stay in the delivered Parquet files and only their counts by day are
taken, so that tens of millions of them are copied once (to the landing) and not twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading
from orchestration.landing.beyond import rounding_lines, sum_up
from orchestration.landing.bill_stage import SAID, BillStage
from orchestration.landing.claims import Claim, claims_of
from orchestration.landing.history import Fact, content_hash, facts
from orchestration.landing.index import Coverage, Index
from orchestration.landing.quarantine import MOST_KEPT, BadRow
from orchestration.landing.schemas import TABLES, LandingTable, sql_type
from orchestration.landing.spans import FOREVER, ONE_DAY, Span, contains, days, merge, overlaps

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
    found: dict[int, Found] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    bills: BillStage | None = None
    """Where bill lines are staged; records of other tables are in a temp table."""

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
    if feed.table == "charges":
        # What lines of several streams say is known when they are joined.
        said = "cast(null as varchar)" if feed.stream else SAID
        load.bills = BillStage(con, load.stage, _stage_columns(load.table), said)
    elif feed.table not in NOT_STAGED:
        con.execute(f"create or replace temp table {load.stage} ({_stage_columns(load.table)})")
    return load


def load_feed(con: DuckDBPyConnection, feed: Feed, deliveries: list[Delivery], window: Span, index: Index) -> FeedLoad:
    """Reads what has a say in the window, and what is not yet known to have none."""
    load = begin(con, feed, deliveries, index)
    if feed.table == "account_tree":
        return _load_trees(con, load, window, index)
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
    drop(con, load, unneeded)
    index.keep_only(feed.table, deliveries)
    return load


def trees_in_force(deliveries: Sequence[Delivery], window: Span) -> dict[date, int]:
    """By day, the rank of the newest dump that was delivered by its end; before the first dump, the first counts."""
    ranks = range(len(deliveries))
    return {
        day: max((rank for rank in ranks if deliveries[rank].delivered_at.date() <= day), default=0)
        for day in (days([window]) if deliveries else ())
    }


def _load_trees(con: DuckDBPyConnection, load: FeedLoad, window: Span, index: Index) -> FeedLoad:
    """Dumps of which each is complete: only those that are in force on a day of the window are opened."""
    load.relevant = set(trees_in_force(load.deliveries, window).values())
    read_files(con, load, sorted(load.relevant), index)
    con.execute(f"update {load.stage} set first_day = least(first_day, date '{window[0]}') where rank = 0")
    index.keep_only(load.feed.table, load.deliveries)
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
        f"{content}, rank bigint, delivery varchar, stream varchar, line bigint, delivered_at timestamptz,"
        " first_day date, last_day date, also_first_day date, also_last_day date, only_day date"
    )


def _day_columns(table: LandingTable) -> str:
    """The days of a record, both ends included; no last day: it has no end. Most bill lines have just one day."""
    ends = f"coalesce({table.ends}, as_of_at)" if "as_of_at" in table.content else table.ends
    also = ("cast(null as date)",) * 2
    if table.name == "charges":
        # What is not usage may be spread over its billing period, or a commitment's term: those days need it too.
        period = (
            "least(billing_period_start_at, commitment_start_at)",
            "greatest(billing_period_end_at, commitment_end_at)",
        )
        also = tuple(
            f"case when charge_category <> 'Usage' then {bound} end" for bound in (_day(period[0]), _last_day(*period))
        )
    return (
        f"{_day(table.starts)} as first_day, {_last_day(table.starts, ends)} as last_day,"
        f" {also[0]} as also_first_day, {also[1]} as also_last_day,"
        " case when first_day = last_day and also_first_day is null then first_day end as only_day"
    )


def _last_day(start: str, end: str) -> str:
    """Half-open: what ends at midnight does not touch the next day; what has no length is where it starts."""
    return f"case when {end} > {start} then {_day(end, 1)} else {_day(end)} end"


def _day(instant: str, earlier_us: int = 0) -> str:
    """The UTC day of an instant, or of a moment before it. The database's own cast asks its calendar, row by row."""
    return f"cast(make_timestamp(epoch_us({instant}) - {earlier_us}) as date)"


def read_files(con: DuckDBPyConnection, load: FeedLoad, ranks: Sequence[int], index: Index) -> None:
    if not ranks:
        return
    # To hash a large file takes one core a while; reading it leaves half of one idle.
    with ThreadPoolExecutor(1) as beside:
        hashes = {rank: beside.submit(content_hash, load.deliveries[rank].path) for rank in ranks}
        try:
            _read_files(con, load, ranks, index, hashes)
        finally:
            beside.shutdown(cancel_futures=True)


def _read_files(
    con: DuckDBPyConnection, load: FeedLoad, ranks: Sequence[int], index: Index, hashes: dict[int, Future[str]]
) -> None:
    chosen = [load.deliveries[rank] for rank in ranks]
    register_deliveries(con, chosen, ranks, load.feed)
    reading = load.feed.read(con, chosen)
    load.notes.update(reading.notes)
    load.found |= {ranks[file]: found for file, found in enumerate(reading.found)}
    for file, rank in enumerate(ranks):
        load.counts[rank] = reading.counts[file]
        load.bad_rows[rank] = []
    for reject in reading.rejects:
        rank = ranks[reject.file]
        load.bad[rank] += 1
        if len(load.bad_rows[rank]) < MOST_KEPT:
            load.bad_rows[rank].append(BadRow(reject.line, reject.reason, reject.raw))
    found = _count_days(con, load, reading) if load.feed.table in NOT_STAGED else _stage(con, load, reading)
    for file, rank in enumerate(ranks):
        load.skipped[rank] += reading.folded.get(file, 0)
        load.bad_rows[rank].sort(key=lambda row: row.line)
        delivery = load.deliveries[rank]
        claims = _claims(con, load, rank, file)
        coverage = Coverage(_days_spoken_of(delivery, found.get(rank, []), claims), tuple(claims))
        load.coverage[rank] = coverage
        variant = load.found[rank].variant if rank in load.found else None
        parts = _invoices(con, load, rank, file) if load.feed.table == "charges" else _whole(load, rank)
        index.put(
            load.feed.table,
            delivery,
            coverage,
            facts(index.source, load.feed, delivery, hashes[rank].result(), variant, parts, load.bad[rank]),
        )


def register_deliveries(con: DuckDBPyConnection, chosen: Sequence[Delivery], ranks: Sequence[int], feed: Feed) -> None:
    """The temp table `deliveries`, which connectors join to learn when their files came."""
    facts = pa.table(
        {
            "file": pa.array(range(len(chosen)), pa.int64()),
            "rank": pa.array(ranks, pa.int64()),
            "name": pa.array([delivery.name for delivery in chosen], pa.string()),
            "stream": pa.array([feed.stream(d) if feed.stream else "" for d in chosen], pa.string()),
            "delivered_at": pa.array([d.delivered_at for d in chosen], pa.timestamp("us", tz="UTC")),
        }
    )
    con.register("delivery_facts", facts)
    con.execute("create or replace temp table deliveries as from delivery_facts")
    con.unregister("delivery_facts")


def _stage(con: DuckDBPyConnection, load: FeedLoad, reading: Reading) -> dict[int, list[Span]]:
    if load.bills:
        ranks = {rank for (rank,) in con.execute("select rank from deliveries").fetchall()}
        rows = load.bills.add(reading.rows, ranks, _day_columns(load.table))
        sum_up(con, rows)
        if rests := rounding_lines(con):
            _keep(con, load, load.bills.added, f"({rests})")
    else:
        rows = "read_rows"
        con.execute(f"create or replace temp table {rows} as {reading.rows}")
        _keep(con, load, load.stage, f"(from {rows} where bad_reason is null and skip_reason is null)")
    _take_bad(con, load, rows)
    for rank, skipped in con.execute(
        f"select rank, count(distinct line) from {rows} join deliveries using (file)"
        " where bad_reason is null and skip_reason is not null group by rank"
    ).fetchall():
        load.skipped[rank] = skipped
    con.execute("drop table if exists read_rows")
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


def _keep(con: DuckDBPyConnection, load: FeedLoad, table: str, rows: str) -> None:
    content = ", ".join(f'r."{name}"' for name in load.table.content)
    con.execute(
        f"""
        insert into {table}
        select {content}, d.rank, d.name, d.stream, r.line, d.delivered_at, {_day_columns(load.table)}
        from {rows} as r join deliveries as d using (file)
        """
    )


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


def _days_spoken_of(delivery: Delivery, found: list[Span], claims: list[Claim]) -> list[Span]:
    days = merge([*found, *(claim.span for claim in claims), *([delivery.declared] if delivery.declared else [])])
    if not days:
        # Nothing but bad rows: the day of the delivery is the one on which somebody will look.
        day = delivery.delivered_at.date()
        days = [(day, day + ONE_DAY)]
    return days


def _claims(con: DuckDBPyConnection, load: FeedLoad, rank: int, file: int) -> list[Claim]:
    if load.feed.table != "charges" or not load.feed.restates:
        return []
    periods = con.execute(
        "select distinct cast(billing_period_start_at as date), cast(billing_period_end_at as date) from bill_sums"
        f" where file = {file}"
    ).fetchall()
    return claims_of(load.deliveries[rank].declared, periods)


def _invoices(con: DuckDBPyConnection, load: FeedLoad, rank: int, file: int) -> list[Fact]:
    """What a bill asks for, as history keeps it."""
    claims = load.known(rank).claims
    replaces = "nothing" if not claims else "billing_period" if claims[0].whole_periods else "window"
    names = ("provider", "invoice_id", "period_start_date", "period_end_date", "currency")
    found = con.execute(
        f"""
        select provider, invoice_id, cast(billing_period_start_at as date), cast(billing_period_end_at as date),
            currency, sum(line_count), sum(rounded_billed_cost), sum(rounded_effective_cost)
        from (
            from bill_sums where file = {file}
            union all by name
            select * replace (
                1 as line_count, billed_cost as rounded_billed_cost, effective_cost as rounded_effective_cost
            )
            from rounding_rests where file = {file}
        )
        group by all order by all
        """
    ).fetchall()
    return [
        dict(zip((*names, "rows", "billed_cost", "effective_cost"), row, strict=True)) | {"replaces": replaces}
        for row in found
    ] or [{"rows": 0, "replaces": replaces}]


def _whole(load: FeedLoad, rank: int) -> list[Fact]:
    spans = load.known(rank).days
    ends = spans[-1][1]
    return [
        {
            "rows": load.counts[rank] - load.bad[rank],
            "period_start_date": spans[0][0],
            "period_end_date": None if ends == FOREVER else ends,
        }
    ]


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


def drop(con: DuckDBPyConnection, load: FeedLoad, ranks: set[int]) -> None:
    if not ranks:
        return
    if load.bills:
        load.bills.drop(ranks)
    elif load.feed.table not in NOT_STAGED:
        con.execute(f"delete from {load.stage} where rank in ({', '.join(map(str, sorted(ranks)))})")
    for rank in ranks:
        for counter in (load.counts, load.skipped):
            del counter[rank]
    for rank, day in [key for key in load.day_rows if key[0] in ranks]:
        del load.day_rows[rank, day]
