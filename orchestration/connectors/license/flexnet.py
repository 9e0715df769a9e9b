"""Debug logs of FlexNet (FlexLM) licence servers: who took and gave back which feature, in the server's local time.

A log line has a time of day and no date: `TIMESTAMP` lines have it, and midnight is where the time falls. What a user
holds of a feature on a host is followed from event to event, so it does not matter which check-in belongs to which
check-out, and a seat that comes back without having been taken was out when the log began.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found, Reject
from orchestration.connectors.local_time import in_order, instant, is_ambiguous
from orchestration.connectors.sql import literal
from orchestration.connectors.tables import PACKED
from orchestration.connectors.text import load_lines, packing
from orchestration.errors import ApportionError
from orchestration.settings import SeatsSource

LINE = r"^\s*([0-9]{1,2}):([0-9]{2}):([0-9]{2}) \(([^)]+)\) (.*)$"
EVENT = r'^(OUT|IN): "([^"]+)" ([^\[(]+)@(\S+)'
DATE = r"(?:^TIMESTAMP |started on .*\()([0-9]{1,2}/[0-9]{1,2}/[0-9]{4})"
STARTED = r"^Server started on "
HOLDER = "file, daemon, epoch, product, user_name, host_name"


def begins(line: str) -> bool:
    return re.match(LINE, line) is not None


def zone_of(delivery: Delivery, source: SeatsSource) -> str:
    if source.timezone is None:
        raise ApportionError(
            f"{delivery.path}: the licence server prints local times without a zone",
            "give the zone of its clock as 'timezone' of the source, such as Europe/Zurich or UTC",
        )
    return source.timezone


def load(
    con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SeatsSource
) -> tuple[str, list[int], list[Found], list[Reject]]:
    zone = zone_of(deliveries[0], source)
    _, counts = load_lines(con, "flex_lines", deliveries, header=False)
    con.execute(f"create or replace temp table flex_dated as {_dated(deliveries)}")
    _refuse_dateless(con, deliveries)
    con.execute(f"create or replace temp table flex_events as {_events(zone)}")
    con.execute(f"create or replace temp table flex_held as {_held()}")
    return _rows(), counts, _found(con, deliveries, zone), []


def _dated(deliveries: Sequence[Delivery]) -> str:
    """Lines cut, each with the day on which it was written; that of a log without dates is in the file's name."""
    declared = " ".join(f"when {file} then date '{d.declared[0]}'" for file, d in enumerate(deliveries) if d.declared)
    of_name = f"case file {declared} end" if declared else "cast(null as date)"
    log = "partition by file order by line"
    return f"""
        select *, coalesce(
                last_value(first_day ignore nulls) over ({log} rows unbounded preceding),
                first_value(first_day ignore nulls) over ({log} rows between current row and unbounded following),
                {of_name}
            ) + midnights + to_seconds(seconds) as local
        from (
            select *, cast(try_strptime(regexp_extract(message, {literal(DATE)}, 1), '%m/%d/%Y') as date) - midnights
                as first_day
            from (
                select *, cast(sum(case when seconds < before - 3600 then 1 else 0 end) over ({log}) as integer)
                    as midnights
                from (select *, last_value(seconds ignore nulls) over ({log} rows between unbounded preceding
                    and 1 preceding) as before from ({_cut()}))
            )
        )
    """


def _cut() -> str:
    return f"""
        select file, line, raw, daemon, message,
            cast(hour as integer) * 3600 + cast(minute as integer) * 60 + cast(second as integer) as seconds
        from (
            select file, line, raw, nullif(parts.hour, '') as hour, parts.minute, parts.second, parts.daemon,
                coalesce(parts.message, '') as message
            from (
                select *,
                    regexp_extract(raw, {literal(LINE)}, ['hour', 'minute', 'second', 'daemon', 'message']) as parts
                from flex_lines
            )
        )
    """


def _refuse_dateless(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> None:
    for (file,) in con.execute(
        "select file from flex_dated where seconds is not null and local is null order by file limit 1"
    ).fetchall():
        raise ApportionError(
            f"{deliveries[file].path}: the log has no TIMESTAMP line, so its day is not known",
            "deliver the log from its beginning, or put its first day into its name, as in flexlm_2026-01-05.log",
        )


def _events(zone: str) -> str:
    """Every line with its instant, its event if it is one, and how often its daemon had been started before."""
    return f"""
        select file, line, raw, daemon, message, local, {instant(zone)} as happened_at,
            coalesce({is_ambiguous(zone)}, false) as is_ambiguous,
            regexp_matches(message, {literal(STARTED)}) as is_start,
            sum(case when is_start then 1 else 0 end) over (partition by file, daemon order by line) as epoch,
            nullif(event.kind, '') as kind, event.product as product, trim(event.user_name) as user_name,
            event.host_name as host_name,
            coalesce(try_cast(nullif(regexp_extract(message, '\\(([0-9]+) licenses?\\)', 1), '') as bigint), 1)
                as licenses
        from (
            select *, regexp_extract(message, {literal(EVENT)}, ['kind', 'product', 'user_name', 'host_name']) as event
            from ({in_order("from flex_dated", "file")})
        )
    """


def _held() -> str:
    """What each holder has after each of its events, and until when."""
    return f"""
        with counted as (
            select *, sum(case kind when 'OUT' then licenses else -licenses end) over (
                partition by {HOLDER} order by line rows unbounded preceding
            ) as change
            from flex_events where kind is not null
        ),

        epochs as (
            select file, daemon, epoch, min(happened_at) as epoch_at
            from flex_events where daemon is not null group by all
        ),

        logs as (select file, min(happened_at) as first_at, max(happened_at) as last_at from flex_events group by file)

        select counted.*,
            -least(0, min(change) over (partition by {HOLDER})) as at_first,
            cast(change + at_first as bigint) as held,
            row_number() over (partition by {HOLDER} order by line) = 1 as is_first,
            case when epoch = 0 then logs.first_at else began.epoch_at end as began_at,
            lead(happened_at) over (partition by {HOLDER} order by line) as next_at,
            case when next_at is null then ended.epoch_at else greatest(next_at, happened_at) end as until,
            logs.last_at
        from counted
        join logs using (file)
        left join epochs as began using (file, daemon, epoch)
        left join epochs as ended
            on counted.file = ended.file and counted.daemon = ended.daemon and counted.epoch + 1 = ended.epoch
    """


def _rows() -> str:
    seat = "file, line, product, user_name, cast(null as varchar) as account, host_name"
    none = "cast(null as varchar) as bad_reason, cast(null as varchar) as skip_reason"
    was_out = "is_first and at_first > 0 and happened_at > began_at"
    return f"""
        select {seat}, held as seats, happened_at as checked_out_at, until as checked_in_at,
            case when until is null then last_at end as as_of_at, {none}
        from flex_held where held > 0
        union all
        select {seat}, cast(at_first as bigint), began_at, happened_at, cast(null as timestamptz), {none}
        from flex_held where {was_out}
        union all by name
        select file, line, 'nothing is held after it' as skip_reason
        from flex_held where held <= 0 and not ({was_out})
        union all by name
        select file, line,
            case when regexp_matches(message, '^(OUT|IN):') then 'a check-out or check-in that cannot be read' end
                as bad_reason,
            case when bad_reason is null then 'no check-out and no check-in' end as skip_reason
        from flex_events where kind is null
    """


def _found(con: DuckDBPyConnection, deliveries: Sequence[Delivery], zone: str) -> list[Found]:
    facts = {
        file: (ambiguous, before)
        for file, ambiguous, before in con.execute(
            """
            select file, count(*) filter (e.is_ambiguous and e.kind is not null),
                count(*) filter (h.is_first and h.at_first > 0)
            from flex_events as e left join flex_held as h using (file, line) group by file
            """
        ).fetchall()
    }
    found = []
    for file, delivery in enumerate(deliveries):
        ambiguous, before = facts.get(file, (0, 0))
        doubts = []
        if ambiguous:
            doubts.append(f"{ambiguous} local times came twice that day and were told apart by their order in the file")
        if before:
            doubts.append(f"{before} holders had seats out when the log began; they are counted from its beginning")
        found.append(Found(f"{PACKED[packing(delivery.path)]}FlexNet debug log, times of {zone}", doubts=tuple(doubts)))
    return found
