"""Which of the staged records count on which day of the window.

Several deliveries speak about the same day: daily dumps repeat a long job, a restated bill repeats a week.
The rules below decide per table who is right, from nothing but what was delivered when and for which window
it claims to be complete. So the outcome depends neither on the order of runs nor on what was landed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.landing.bill_stage import COSTS, SAID
from orchestration.landing.claims import restated
from orchestration.landing.schemas import CHARGES
from orchestration.landing.spans import Span, days, merge, overlaps
from orchestration.landing.stage import KEYS, FeedLoad, trees_in_force


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
    return _chosen_by_day(con, load, [(day, rank) for day in days([window]) for rank in winners(load, day)])


def _chosen_by_day(con: DuckDBPyConnection, load: FeedLoad, pairs: Iterable[tuple[date, int]]) -> tuple[str, str]:
    """Of each day, only the records of certain deliveries."""
    pairs = list(pairs)
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


def _tree_in_force(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> tuple[str, str]:
    """One complete dump for each day; the staged rows of the first one reach back to the window's first day."""
    return _chosen_by_day(con, load, trees_in_force(load.deliveries, window).items())


@dataclass(frozen=True)
class StandingCharges:
    """The bill lines that no newer bill replaces."""

    lines: str
    """Condition on a staged line `s`, in SQL."""
    days: set[date]
    """The days of the window (and maybe others) on which there may be any of them."""


def stand(con: DuckDBPyConnection, load: FeedLoad, window: Span) -> StandingCharges:
    """A bill line stands until a newer bill claims it (see `claims`). Files with the same stamp, and parts of one
    export, are one delivery and stand beside each other."""
    stream = load.feed.stream
    known = [c.claims if c else () for c in load.coverage]
    claims = [
        (d.delivered_at, stream(d) if stream else "", claim)
        for d, own in zip(load.deliveries, known, strict=True)
        for claim in own
    ]
    lines = "true"
    if len({delivery.delivered_at for delivery in load.deliveries}) > 1:  # or else nothing is newer than any of them
        lines = f"not {restated(con, load.deliveries, known, claims, stream)}"
    # Few lines have more than a day, and only they are looked at on each of their days.
    con.execute(f"create or replace table lasting_charges as from {load.stage} where only_day is null")
    single = con.execute(f"select distinct only_day from {load.stage} where only_day is not null").fetchall()
    lasting = con.execute(
        "select distinct first_day, last_day + 1 from lasting_charges union"
        " select distinct also_first_day, also_last_day + 1 from lasting_charges where also_first_day is not null"
    ).fetchall()
    spans = [_clip(span, window) for span in lasting if overlaps([span], window)]
    return StandingCharges(lines, {day for (day,) in single}.union(days(merge(spans))))


def charges_on(load: FeedLoad, charges: StandingCharges, day: date) -> str:
    """A SELECT of the bill lines that stand on a day.

    Lines that say the same have the same days, so those of one day are enough to know a line's place among them. Hardly
    any line has its like, so only the few that come second or later are kept aside, and all others go through unseen.
    """
    of_day = f"""
        select * from {load.stage} where only_day = date '{day}'
        union all
        select * from lasting_charges
        where date '{day}' between first_day and last_day or date '{day}' between also_first_day and also_last_day
    """
    standing = f"select * from ({of_day}) as s where {charges.lines}"
    # To read a few columns of the day once more is cheaper than to hold all of them.
    held = "not materialized"
    if load.feed.stream:
        held, standing = "materialized", f"select * replace ({SAID} as said) from ({_joined(standing)})"
    return f"""
        with standing as {held} ({standing}),

        later as (
            select part, part_row, row_number() over (partition by said order by rank, line) as place from standing
            qualify place > 1
        )

        select * replace (charge_key || ':' || said || '#' || coalesce(place, 1) as charge_key), date '{day}' as date
        from standing left join later using (part, part_row)
    """


def _joined(standing: str) -> str:
    """Lines of different streams that say the same, as one line with the money of all of them.

    Amounts are added, so that a pair which does not find each other costs the same as one which does. Only the list
    price, which every stream repeats, is taken once.
    """
    said = [name for name in CHARGES.content if name not in (*COSTS, "is_final")]
    money = (
        "max(list_cost) over same as list_cost, sum(billed_cost) over same as billed_cost,"
        " sum(effective_cost) over same as effective_cost, bool_and(is_final) over same as is_final"
    )
    return f"""
        select * exclude (place) replace ({money})
        from (
            select *, row_number() over (partition by {", ".join(said)}, stream order by rank, line) as place
            from ({standing})
        )
        window same as (partition by {", ".join(said)}, place)
        qualify row_number() over (partition by {", ".join(said)}, place order by stream) = 1
    """


_RULES = {
    **dict.fromkeys(KEYS, _newest_version),
    "storage_usage": _newest_reading,
    "node_inventory": _newest_inventory,
    "account_tree": _tree_in_force,
}


def _clip(span: Span, window: Span) -> Span:
    return max(span[0], window[0]), min(span[1], window[1])


def _register(con: DuckDBPyConnection, name: str, columns: dict[str, Sequence[object]]) -> None:
    con.register("rule_rows", pa.table(columns))
    con.execute(f"create or replace temp table {name} as from rule_rows")
    con.unregister("rule_rows")
