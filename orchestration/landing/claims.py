"""What a bill is complete for, and which lines of older bills it therefore replaces.

Providers deliver a billing period again as a whole, so a bill replaces the older ones of the periods that it has lines
of. One that says another window in its name (a week that was billed anew) replaces what was charged in that window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery
from orchestration.landing.spans import Span, merge

_ONE_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Claim:
    span: Span
    whole_periods: bool
    """Whether it is about billing periods, and not about the time of the charges."""

    def plain(self) -> list[object]:
        return [str(self.span[0]), str(self.span[1]), self.whole_periods]

    @classmethod
    def of(cls, stored: Sequence) -> Claim:
        return cls((date.fromisoformat(stored[0]), date.fromisoformat(stored[1])), stored[2])


_RESTATED = """c.delivered_at > s.delivered_at and coalesce(c.stream, s.stream) = s.stream and (
    (
        c.earliest_at <= s.billing_period_start_at and s.billing_period_end_at <= c.latest_at
        and epoch_us(s.billing_period_start_at) / 2 + epoch_us(s.billing_period_end_at) / 2
            between epoch_us(c.from_at) and epoch_us(c.to_at)
    )
    or (
        not c.whole_periods
        and c.from_at <= s.charge_start_at and s.charge_end_at <= c.to_at
        and s.charge_start_at < c.to_at  -- also where the charge has no length
    )
)"""
"""Whether a claim `c` of a bill replaces the line `s` of another one. A line that reaches beyond the month in which it
is billed, such as a year paid ahead, goes with its billing period: no window of a month contains a year. Months that
begin at some place's midnight are still those months."""


def claims_of(declared: Span | None, billing_periods: Iterable[Span]) -> list[Claim]:
    if declared is None:
        return [Claim(span, True) for span in merge(billing_periods)]
    return [Claim(declared, all(day.day == 1 for day in declared))]


def restated(
    con: DuckDBPyConnection,
    deliveries: Sequence[Delivery],
    known: Sequence[Sequence[Claim] | None],
    claims: Sequence[tuple[datetime, str | None, Claim]],
    stream: Callable[[Delivery], str] | None,
) -> str:
    """SQL for whether a staged line `s` has to give way to one of the claims: when, of which stream (None: any), what.

    `known` are the claims of the deliveries themselves. A bill that says a window in its name goes as a unit when a
    newer one is complete for that window, also with the lines that it has of other periods: the newer one has those
    again, if they are still true.
    """
    _register(con, claims)
    gone = [
        rank
        for rank, (delivery, own) in enumerate(zip(deliveries, known, strict=True))
        if own and own[0].span == delivery.declared
        for at, of_stream, claim in claims
        if at > delivery.delivered_at
        and of_stream in (None, stream(delivery) if stream else "")
        and claim.span[0] <= delivery.declared[0]
        and delivery.declared[1] <= claim.span[1]
    ]
    ranks = ", ".join(map(str, sorted({*gone, -1})))
    return f"(s.rank in ({ranks}) or exists (from bill_claims as c where {_RESTATED}))"


def _register(con: DuckDBPyConnection, claims: Sequence[tuple[datetime, str | None, Claim]]) -> None:
    """The table `bill_claims` that _RESTATED speaks of. Not a temporary one: several cursors read it at once."""
    slack = [_ONE_DAY if claim.whole_periods else timedelta() for _, _, claim in claims]
    rows = pa.table(
        {
            "delivered_at": pa.array([at for at, _, _ in claims], pa.timestamp("us", tz="UTC")),
            "stream": pa.array([stream for _, stream, _ in claims], pa.string()),
            "from_at": pa.array([claim.span[0] for _, _, claim in claims], pa.date32()),
            "to_at": pa.array([claim.span[1] for _, _, claim in claims], pa.date32()),
            "earliest_at": pa.array([c.span[0] - d for (_, _, c), d in zip(claims, slack, strict=True)], pa.date32()),
            "latest_at": pa.array([c.span[1] + d for (_, _, c), d in zip(claims, slack, strict=True)], pa.date32()),
            "whole_periods": pa.array([claim.whole_periods for _, _, claim in claims], pa.bool_()),
        }
    )
    con.register("claim_rows", rows)
    con.execute("create or replace table bill_claims as from claim_rows")
    con.unregister("claim_rows")
