"""ALLOCATION §0: the split, the rounding, and the lookups that every section of the oracle uses.

Money is an `int` of nano-units and time an `int` of milliseconds since the midnight that starts the day,
so nothing here can lose a digit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

Row = dict[str, Any]
Interval = tuple[int, int]

HOUR = 3_600_000
DAY = 24 * HOUR
FOREVER = 10**18


# --- numbers -----------------------------------------------------------------------------------------------


def round_half_away(numerator: int, denominator: int) -> int:
    """numerator / denominator to the nearest integer, halves away from zero (denominator > 0)."""
    magnitude = (2 * abs(numerator) + denominator) // (2 * denominator)
    return magnitude if numerator >= 0 else -magnitude


def share(amount: int, running: int, total: int) -> int:
    """What the first `running` of `total` weight gets of an amount in its smallest units."""
    return round_half_away(amount * running, total)


def split(amount: int, weights: Sequence[int]) -> list[int]:
    """Cut an amount in parts by weight; the parts add up to it. The order of the weights matters."""
    positive = [max(weight, 0) for weight in weights]
    total = sum(positive)
    if total == 0:
        raise ValueError("a split needs a positive weight; the caller's rule names the fallback")
    parts, running, given = [], 0, 0
    for weight in positive:
        running += weight
        upto = share(amount, running, total)
        parts.append(upto - given)
        given = upto
    return parts


def nano(amount: Decimal | None) -> int | None:
    """A decimal(38, 9) as nano-units; anything finer would be a mistake of the caller."""
    if amount is None:
        return None
    scaled = Decimal(amount).scaleb(9)
    if scaled != int(scaled):
        raise ValueError(f"{amount} has more than nine decimals")
    return int(scaled)


def money(nanos: int) -> Decimal:
    return Decimal(nanos).scaleb(-9)


def scaled(value: Decimal | float | None, factor: int, default: int = 0) -> int:
    """A number of a seed in whole parts of 1/factor, halves away from zero; `default` where the cell is empty."""
    if value is None:
        return default
    exact = Fraction(str(value)) * factor
    return round_half_away(exact.numerator, exact.denominator)


# --- time --------------------------------------------------------------------------------------------------


def since_midnight(at: datetime, day: date) -> int:
    """Milliseconds from the start of the UTC day; before it they are negative."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (aware - datetime.combine(day, time(), UTC)) // timedelta(milliseconds=1)


def overlap(one: Interval, other: Interval) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def clip(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def hour_interval(hour: int) -> Interval:
    return hour * HOUR, (hour + 1) * HOUR


def hours_touched(interval: Interval) -> range:
    """The hours of the day in which a non-empty interval has time."""
    start, end = clip(interval[0], 0, DAY), clip(interval[1], 0, DAY)
    return range(start // HOUR, -(-end // HOUR)) if start < end else range(0)


def united(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals as disjoint ones."""
    merged: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def without(interval: Interval, taken: Iterable[Interval]) -> list[Interval]:
    """What is left of an interval outside of the others."""
    left, start = [], interval[0]
    for begins, ends in united(taken):
        if start < min(begins, interval[1]):
            left.append((start, min(begins, interval[1])))
        start = max(start, ends)
    return [*left, (start, interval[1])] if start < interval[1] else left


# --- policy lookups ----------------------------------------------------------------------------------------


def valid_on(rows: Iterable[Row], day: date) -> list[Row]:
    """The rows whose half-open validity contains the day."""
    return [
        row
        for row in rows
        if (row["valid_from"] is None or row["valid_from"] <= day)
        and (row["valid_to"] is None or day < row["valid_to"])
    ]


def most_specific(rows: Iterable[Row], **wanted: str | None) -> Row | None:
    """The row of two wanted columns, where `*` stands for anything and the first column counts more.

    (pool, value) before (pool, *) before (*, value) before (*, *).
    """
    first, second = wanted
    by_key = {(row[first], row[second]): row for row in rows}
    for key in ((wanted[first], wanted[second]), (wanted[first], "*"), ("*", wanted[second]), ("*", "*")):
        if key in by_key:
            return by_key[key]
    return None


@lru_cache(maxsize=4096)
def _like(pattern: str) -> re.Pattern[str]:
    return re.compile("".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern), re.DOTALL)


def matches(matcher: str | None, value: Any) -> bool:
    """A rule's LIKE pattern against a field: an empty matcher takes anything, an absent field only that.

    A mapping (labels, tags) is matched by `key=pattern`.
    """
    if not matcher:
        return True
    if isinstance(value, dict):
        key, _, matcher = matcher.partition("=")
        value = value.get(key)
    return value is not None and _like(matcher).fullmatch(value) is not None


def mapping(text: str | None) -> dict[str, str]:
    return json.loads(text) if text else {}


def first_payer(rules: Iterable[Row], subject: Row) -> tuple[str, str | None] | None:
    """(team, project) by the first payer rule that matches; `subject` holds just the fields of its type."""
    fields = ("cluster_id", "account", "user_name", "namespace", "label", "tag", "path")
    for rule in sorted(rules, key=lambda rule: rule["rule_order"]):
        if all(not rule[field] or (field in subject and matches(rule[field], subject[field])) for field in fields):
            return rule["team_id"], rule["project_id"]
    return None


def absent_first(values: Iterable[str | None]) -> tuple[tuple[bool, str], ...]:
    """Sort key for payers: absent values come first, texts by code point."""
    return tuple((value is not None, value or "") for value in values)
