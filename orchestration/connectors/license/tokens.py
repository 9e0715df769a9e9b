"""Tokens that are used up: an amount at a time, or over a stretch of time, but never held.

A licence's cost follows seat-hours, so a token counts as one seat-hour: 3,600 seats for one second. Shares then follow
tokens alone, however long a use took. What is used over several days falls on them by time.
"""

from __future__ import annotations

from orchestration.connectors.base import Delivery
from orchestration.connectors.sql import backwards, first_reason, literal, missing, unreadable, utc
from orchestration.connectors.tables import Layout
from orchestration.errors import ApportionError

REQUIRED = ("product", "user", "tokens")
OPTIONAL = ("account", "host", "at", "from", "to")
SECONDS_OF_AN_HOUR = 3600


def require_a_time(delivery: Delivery, layout: Layout) -> None:
    if "at" not in layout.places and not {"from", "to"} <= layout.places.keys():
        raise ApportionError(
            f"{delivery.path}, line 1: missing column at (or from and to)",
            "deliver tokens with the time at which, or from which to which, they were used",
        )


def select(lines: str) -> str:
    """SQL for token lines as seats. What one user used in one second is one record, on the first of its lines."""
    units = f"try_cast(round(try_cast(l.tokens as decimal(28, 9)) * {SECONDS_OF_AN_HOUR}) as bigint)"
    reason = first_reason(
        missing("l.product", "product"),
        missing("l.user", "user"),
        missing("l.tokens", "tokens"),
        unreadable("l.tokens", "units", "tokens", "a number"),
        ("units < 0", literal("tokens is negative")),
        missing('coalesce(l.at, l."from")', "at"),
        unreadable('coalesce(l.at, l."from")', "since", "at", "a time"),
        unreadable('l."to"', "until", "to", "a time"),
        backwards("since", "until"),
    )
    return f"""
        (
            with used as (
                select l.file, l.line, l.product, l.user as user_name, l.account, l.host as host_name,
                    {units} as units,
                    {utc('coalesce(l.at, l."from")')} as since,
                    {utc('l."to"')} as until,
                    {reason} as bad_reason
                from {lines} as l
            ),

            on_days as (
                select *, unnest(generate_series(
                    date_trunc('day', since), coalesce(greatest(until - interval 1 microsecond, since), since),
                    interval 1 day
                )) as day
                from used where bad_reason is null
            ),

            shares as (
                select *,
                    greatest(since, day) as share_since,
                    {_used_before("least(until, day + interval 1 day)")} - {_used_before("share_since")} as share
                from on_days
            ),

            summed as (
                select file, min(line) as line, product, user_name, account, host_name,
                    cast(sum(case when until > since then share else units end) as bigint) as seats,
                    date_trunc('second', share_since) as checked_out_at
                from shares group by all
            )

            select file, line, product, user_name, account, host_name, seats, checked_out_at,
                checked_out_at + interval 1 second as checked_in_at, cast(null as timestamptz) as as_of_at,
                cast(null as varchar) as bad_reason, cast(null as varchar) as skip_reason
            from summed
            union all by name
            select file, line, bad_reason from used where bad_reason is not null
            union all by name
            select file, line, 'in the sum of its user and second' as skip_reason
            from used where bad_reason is null and (file, line) not in (select (file, line) from summed)
        )
    """


def _used_before(instant: str) -> str:
    """Of a use's units those until an instant, rounded; differences of these add up to all of them."""
    elapsed, whole_time = (f"cast(epoch_us({at}) - epoch_us(since) as hugeint)" for at in (instant, "until"))
    return f"((2 * units * {elapsed} + {whole_time}) // (2 * nullif({whole_time}, 0)))"
