"""Which of the staged records count on which day of the window.

Several deliveries speak about the same day: daily dumps repeat a long job, a restated bill repeats a week.
The rules below decide per table who is right, from nothing but what was delivered when and for which window
it claims to be complete. So the outcome depends neither on the order of runs nor on what was landed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.landing.schemas import CHARGES
from orchestration.landing.spans import Span, days, overlaps
from orchestration.landing.stage import KEYS, FeedLoad

RESTATED = """c.delivered_at > s.delivered_at and (
    (
        c.from_at <= s.charge_start_at and s.charge_end_at <= c.to_at
        and s.charge_start_at < c.to_at  -- also where the charge has no length
    )
    or (c.from_at <= s.billing_period_start_at and s.billing_period_end_at <= c.to_at)
)"""
"""Whether a claim `c` of a bill replaces the line `s` of another one."""


def make_live(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> str:
    """Creates the table of live rows, one per record and day, and returns its name."""
    name = f"live_{load.feed.table}"
    chosen, on_day = _RULES[load.feed.table](con, load, window)
    con.execute(
        f"""
        create or replace temp table {name} as
        with on_days as (
            select *, cast(unnest(generate_series(
                greatest(least(first_day, also_first_day), date '{window[0]}'),
                least(greatest(last_day, also_last_day), date '{window[1]}' - 1),
                interval 1 day
            )) as date) as date
            from ({chosen})
        )

        select s.* from on_days as s {on_day}
        and (
            s.date between s.first_day and coalesce(s.last_day, s.date)
            or s.date between s.also_first_day and s.also_last_day
        )
        order by s.date, s.rank, s.line
        """
    )
    return name


def winners(load: FeedLoad, day: date) -> list[int]:
    """Ranks of the newest deliveries that are complete for a day; nobody claims it: all of them."""
    claiming = [rank for rank, d in enumerate(load.deliveries) if d.declared and d.declared[0] <= day < d.declared[1]]
    if not claiming:
        return list(range(len(load.deliveries)))
    newest = load.deliveries[claiming[-1]].delivered_at
    return [rank for rank in claiming if load.deliveries[rank].delivered_at == newest]


def _newest_version(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> tuple[str, str]:
    """The newest version of each record, unless a newer complete dump of the day lacks it."""
    newest: dict[date, object] = {}
    for delivery in load.deliveries:  # oldest first, so the newest claim stays
        if delivery.declared and overlaps([delivery.declared], window):
            newest |= dict.fromkeys(days([_clip(delivery.declared, window)]), delivery.delivered_at)
    _register(
        con,
        "claims",
        {
            "date": pa.array(newest.keys(), pa.date32()),
            "newest_at": pa.array(newest.values(), pa.timestamp("us", tz="UTC")),
        },
    )
    chosen = (
        f"select * from {load.stage} qualify row_number() over"
        f" (partition by {', '.join(KEYS[load.feed.table])} order by rank desc, line desc) = 1"
    )
    known = "s.delivered_at >= coalesce(c.newest_at, s.delivered_at)"
    return chosen, f"left join claims as c on c.date = s.date where {known}"


def _newest_reading(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> tuple[str, str]:
    pairs = [(day, rank) for day in days([window]) for rank in winners(load, day)]
    _register(
        con,
        "winners",
        {
            "date": pa.array([day for day, _ in pairs], pa.date32()),
            "rank": pa.array([rank for _, rank in pairs], pa.int64()),
        },
    )
    return f"from {load.stage}", "join winners as w on w.date = s.date and w.rank = s.rank where true"


def _newest_inventory(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> tuple[str, str]:
    return f"select * from {load.stage} where rank = {len(load.deliveries) - 1}", "where true"


def _not_restated(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> tuple[str, str]:
    """A bill line stands until a newer bill is complete for its time, or for the whole billing period it is
    in.

    The second half is for lines that reach beyond the month they are billed in, such as a year paid ahead:
    the next version of that month's bill repeats them, and no window of a month contains a year. Files with
    the same stamp are parts of one delivery and stand beside each other.
    """
    register_claims(
        con,
        [(d.delivered_at, c.claims) for d, c in zip(load.deliveries, load.coverage, strict=True) if c and c.claims],
    )
    chosen = f"""
        select * replace (
            charge_key || ':' || {_SAID} || '#' || row_number() over (partition by {_SAID} order by rank, line)
            as charge_key
        )
        from {load.stage} as s
        where not exists (from claims as c where {RESTATED})
    """
    return chosen, "where true"


_SAID = "md5(to_json([{}]))".format(
    ", ".join(f"cast({name} as varchar)" for name in CHARGES.content if name not in ("charge_key", "is_final"))
)
"""A bill line is known by what it says, and by its place among lines that say the same: the same line keeps its key
when the bill is delivered again, and days that were built before and after still speak of one line."""


_RULES = {
    **dict.fromkeys(KEYS, _newest_version),
    "storage_usage": _newest_reading,
    "node_inventory": _newest_inventory,
    "charges": _not_restated,
}


def register_claims(con: DuckDBPyConnection, claims: Sequence[tuple[datetime, Span]]) -> None:
    """The temp table `claims` that RESTATED speaks of."""
    _register(
        con,
        "claims",
        {
            "delivered_at": pa.array([at for at, _ in claims], pa.timestamp("us", tz="UTC")),
            "from_at": pa.array([claim[0] for _, claim in claims], pa.date32()),
            "to_at": pa.array([claim[1] for _, claim in claims], pa.date32()),
        },
    )


def _clip(span: Span, window: Span) -> Span:
    return max(span[0], window[0]), min(span[1], window[1])


def _register(con: DuckDBPyConnection, name: str, columns: dict[str, Sequence[object]]) -> None:
    con.register("rule_rows", pa.table(columns))
    con.execute(f"create or replace temp table {name} as from rule_rows")
    con.unregister("rule_rows")
