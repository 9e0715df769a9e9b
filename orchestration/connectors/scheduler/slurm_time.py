"""Times as Slurm prints them: epoch seconds, local time without a zone, or with an offset.

A local time in the hour that autumn repeats means two instants. Both are worked out, and the caller picks the
one that fits the job's elapsed time; the database's own conversion would silently take one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery
from orchestration.connectors.sql import identifier, literal, quoted
from orchestration.errors import ApportionError
from orchestration.settings import SlurmSource

UNKNOWN = ("Unknown", "None", "N/A", "(null)", "0")
EPOCH = r"[0-9]{6,11}(\.[0-9]+)?"
LOCAL = r"[0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
ZONED = LOCAL + r" ?(Z|UTC|GMT|[+-][0-9]{2}(:?[0-9]{2})?)"
"""Year, month and day in this order are the one way that is read; `05/01/2026` could be two days."""


@lru_cache(maxsize=64)
def offset_periods(zone: str, first_year: int, last_year: int) -> list[tuple[datetime, datetime, int]]:
    """UTC instants [from, to) and the zone's offset in seconds, over whole years and a day around them."""
    tz = ZoneInfo(zone)
    start = datetime(first_year, 1, 1, tzinfo=UTC) - timedelta(days=2)
    stop = datetime(last_year + 1, 1, 1, tzinfo=UTC) + timedelta(days=2)

    def offset(at: datetime) -> int:
        return int(at.astimezone(tz).utcoffset().total_seconds())  # type: ignore[union-attr]

    periods, since, at = [], start, start
    while at < stop:
        step = at + timedelta(days=1)
        if offset(step) != offset(at):
            low, high = 0, 86_400
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(at + timedelta(seconds=middle)) == offset(at) else (low, middle)
            change = at + timedelta(seconds=high)
            periods.append((since, change, offset(at)))
            since = change
        at = step
    return [*periods, (since, stop, offset(since))]


def candidates_sql(column: str, zone: str | None, first_year: int, last_year: int) -> str:
    """SQL for the list of instants (earliest first) that a printed time can mean.

    Empty list: unreadable. NULL: Slurm does not know. A local time in spring's gap never was on a clock; it
    is read with the offset before the gap, as a clock that nobody had set yet.
    """
    unknown = ", ".join(f"'{word}'" for word in UNKNOWN)
    epoch = f"[cast(make_timestamp(cast(cast({column} as decimal(28, 6)) * 1000000 as bigint)) as timestamptz)]"
    iso = f"replace({column}, '/', '-')"
    offset = (
        f"regexp_replace(regexp_replace({iso}, ' ?(Z|UTC|GMT)$', '+00'), '([+-][0-9]{{2}})([0-9]{{2}})$', '\\1:\\2')"
    )
    zoned = f"list_filter([try_cast({offset} as timestamptz)], lambda x: x is not null)"
    if zone is None:
        local = "cast([] as timestamptz[])"
    else:
        periods = offset_periods(zone, first_year, last_year)
        naive = f"try_cast({iso} as timestamp)"
        fits = [
            f"case when {_between(naive, _ts(low, off), _ts(high, off))} then {_shift(naive, off)} end"
            for low, high, off in periods
        ]
        gaps = [
            f"when {_between(naive, _ts(high, offset), _ts(high, later))} then {_shift(naive, offset)}"
            for (_, high, offset), (_, _, later) in pairwise(periods)
            if later > offset
        ]
        all_fits = f"list_filter([{', '.join(fits)}], lambda x: x is not null)"
        in_gap = f"case {' '.join(gaps)} end" if gaps else "cast(null as timestamptz)"
        local = (
            f"case when {naive} is null then cast([] as timestamptz[])"
            f" when {in_gap} is not null then [{in_gap}] else list_sort({all_fits}) end"
        )
    return (
        f"case when {column} is null or {column} in ({unknown}) then null"
        f" when regexp_full_match({column}, '{EPOCH}') then {epoch}"
        f" when regexp_full_match({column}, '{ZONED}') then {zoned}"
        f" when regexp_full_match({column}, '{LOCAL}') then {local}"
        " else cast([] as timestamptz[]) end"
    )


def pick_sql(held: str, delivered: str) -> str:
    """SQL for which pair of the lists `starts` and `ends` is meant: 'first start, first end' is '11', and so
    on.

    `held` is the number of seconds between start and end, or NULL. For an open record the end is its
    delivery, and the nearest start is taken: guessing another one than the final record will show would make
    two jobs of one.
    """
    lasted = "epoch_us({end}) - epoch_us({start}) = {held} * 1000000"
    pairs = [("11", 1, 1), ("12", 1, 2), ("21", 2, 1), ("22", 2, 2)]
    exact = " ".join(
        f"when {lasted.format(end=f'ends[{end}]', start=f'starts[{start}]', held=held)} then '{name}'"
        for name, start, end in pairs
    )
    away = "abs(epoch({delivered}) - epoch(starts[{nth}]) - {held})"
    second, first = (away.format(delivered=delivered, nth=nth, held=held) for nth in (2, 1))
    return f"""
        case
            when len(starts) = 1 and coalesce(len(ends), 1) = 1 then '11'
            when ends is null and {second} < {first} then '21'
            when ends is null then '11'
            {exact}
            when ends[1] < starts[1] and ends[2] >= starts[1] then '12'
            else '11'
        end"""


def as_of_sql(held: str, delivered: str) -> str:
    """SQL for when a record without an end (`start_at`, `end_at`) was printed.

    Slurm prints how long an open record has lasted, and so says the instant itself; a file may be moved or copied long
    after that. Without it the delivery counts, which is never before the printing.
    """
    since = f"epoch({delivered}) - epoch(start_at)"
    printed = f"case when {held} > 0 and {held} < {since} then start_at + to_seconds({held}) else {delivered} end"
    return f"case when end_at is null then greatest({printed}, start_at) end"


def picked(times: str, place: int) -> str:
    """The chosen one of `starts` (place 1) or `ends` (place 2)."""
    return f"{times}[cast(pick[{place}] as bigint)]"


def _ts(instant: datetime, offset: int) -> str:
    """An instant as that period's local clock shows it."""
    return f"timestamp '{(instant + timedelta(seconds=offset)).strftime('%Y-%m-%d %H:%M:%S')}'"


def _between(value: str, low: str, high: str) -> str:
    return f"{value} >= {low} and {value} < {high}"


def _shift(naive: str, offset: int) -> str:
    return f"cast({naive} - to_seconds({offset}) as timestamptz)"


def clock_seconds(column: str) -> str:
    """`1-02:03:04`, `03:04` or plain seconds, as SQL; nothing lasts for thousands of years, and sums would not fit."""
    pattern = r"'(?:(\d{1,6})-)?(?:(\d{1,8}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?'"
    parts = [
        f"coalesce(try_cast(regexp_extract({column}, {pattern}, {group}) as bigint), 0) * {seconds}"
        for group, seconds in ((1, 86_400), (2, 3_600), (3, 60), (4, 1))
    ]
    return (
        f"case when regexp_full_match({column}, '\\d{{1,11}}(\\.0*)?') then try_cast({column} as bigint)"
        f" when regexp_full_match({column}, {pattern}) then {' + '.join(parts)} end"
    )


def years_of(con: DuckDBPyConnection, table: str, columns: Sequence[str]) -> tuple[int, int]:
    """The years that local times fall into, so that only those changes of the clock are looked at."""
    low, high = con.execute(
        "select min(year), max(year) from (select cast(text[1:4] as bigint) as year"
        f" from ({_all_texts(table, columns)}) where regexp_full_match(text, '(19|20|21)\\d\\d[-/].*'))"
    ).fetchall()[0]
    return (low or 2000), (high or 2000)


def time_forms(con: DuckDBPyConnection, table: str, columns: Sequence[str], zone: str | None) -> dict[int, str]:
    """How each file prints its times, in words."""
    forms = {"epoch times": EPOCH, f"local times read as {zone}": LOCAL, "times with an offset": ZONED}
    tests = ", ".join(f"bool_or(regexp_full_match(text, '{form}'))" for form in forms.values())
    found = con.execute(f"select file, {tests} from ({_all_texts(table, columns)}) group by file").fetchall()
    return {
        file: " and ".join(name for name, is_there in zip(forms, which, strict=True) if is_there)
        for file, *which in found
    }


def need_zone(
    con: DuckDBPyConnection,
    table: str,
    columns: Sequence[str],
    deliveries: Sequence[Delivery],
    source: SlurmSource,
) -> None:
    if source.timezone is not None:
        return
    found = con.execute(
        f"select file, line, name, text from ({_all_texts(table, columns)})"
        f" where regexp_full_match(text, '{LOCAL}')"
        f" order by file, line, list_position([{quoted(columns)}], name) limit 1"
    ).fetchall()
    for file, line, column, text in found:
        raise ApportionError(
            f"{deliveries[file].path}, line {line}: {column} is a local time without a zone: {text}",
            f"add 'timezone: <IANA name>' to source '{source.name}', or dump with SLURM_TIME_FORMAT=%s",
        )


def _all_texts(table: str, columns: Sequence[str]) -> str:
    return " union all ".join(
        f"select file, line, {literal(column)} as name, {identifier(column)} as text from {table}" for column in columns
    )


def read_local(text: str, zone: str | None) -> datetime | None:
    """One printed time in Python, for the small dumps; the first of two possible instants."""
    text = text.strip()
    if not text or text in UNKNOWN:
        return None
    if re.fullmatch(EPOCH, text):
        return datetime.fromtimestamp(float(text), UTC)
    if not re.fullmatch(f"{LOCAL}|{ZONED}", text):
        raise ValueError(text)
    at = datetime.fromisoformat(re.sub(r" ?(Z|UTC|GMT)$", "+00:00", text.replace("/", "-")))
    if at.tzinfo is None:
        if zone is None:
            raise LookupError(text)
        at = at.replace(tzinfo=ZoneInfo(zone), fold=0)
    return at.astimezone(UTC)
