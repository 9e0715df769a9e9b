"""Sets of UTC days as sorted half-open spans: a year of days is one pair, and open ends have a place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

Span = tuple[date, date]

FOREVER = date.max
ONE_DAY = timedelta(days=1)


def merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def overlaps(spans: Sequence[Span], window: Span) -> bool:
    return any(start < window[1] and end > window[0] for start, end in spans)


def contains(spans: Sequence[Span], day: date) -> bool:
    return any(start <= day < end for start, end in spans)


def days(spans: Iterable[Span], last: date | None = None) -> Iterator[date]:
    """Each day; spans without an end reach to `last` (inclusive), and always include their first day."""
    for start, end in spans:
        stop = max(start, last or start) + ONE_DAY if end == FOREVER else end
        day = start
        while day < stop:
            yield day
            day += ONE_DAY
