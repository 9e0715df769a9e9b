"""ALLOCATION §1, effective cost: fees of commitments to the use that they cover, where the provider does not say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import NamedTuple

from .exact import DAY, HOUR, Interval, Row, clip, hour_interval, nano, overlap, share, since_midnight, split


class FeePart(NamedTuple):
    """What an hour of a commitment gives to a line that it covers, or to nobody, in nano-units."""

    fee: Row
    covered: Row | None
    hour: int
    cost: int


def is_amortized(charge: Row) -> bool:
    if charge["charge_category"] != "Purchase" or charge["effective_cost"] is not None or not charge["commitment_id"]:
        return False
    start, end = _bounds(charge)
    return end > start and bool((charge["commitment_quantity"] or 0) > 0 or charge["commitment_end_at"])


def fee_parts(charges: Iterable[Row], day: date) -> Iterator[FeePart]:
    charges = list(charges)
    fees = [charge for charge in charges if is_amortized(charge)]
    for hour in range(24):
        for fee in fees:
            time = hour_interval(hour)
            cost = _running(fee, "billed_cost", time[1], day) - _running(fee, "billed_cost", time[0], day)
            if not overlap(_term(fee, day), time):
                continue
            alike = [other for other in fees if _commitment(other) == _commitment(fee)]
            purchased = sum(_part(nano(other["commitment_quantity"]) or 0, _term(other, day), hour) for other in alike)
            covered = {
                charge["charge_key"]: (charge, _part(nano(charge["commitment_quantity"]), used_time(charge, day), hour))
                for charge in charges
                if charge["charge_category"] == "Usage"
                and (charge["commitment_quantity"] or 0) > 0
                and _commitment(charge) == _commitment(fee)
                and overlap(used_time(charge, day), time)
            }
            used = sum(quantity for _, quantity in covered.values())
            unused = 1 if purchased == used == 0 else max(purchased - used, 0)
            lines = [None, *(covered[key][0] for key in sorted(covered))]
            weights = [unused, *(covered[key][1] for key in sorted(covered))]
            for line, part in zip(lines, split(cost, weights), strict=True):
                yield FeePart(fee, line, hour, part)


def used_time(charge: Row, day: date) -> Interval:
    start, end = since_midnight(charge["charge_start_at"], day), since_midnight(charge["charge_end_at"], day)
    return start, max(end, start + 1)


def _commitment(charge: Row) -> tuple:
    return charge["provider"], charge["currency"], charge["commitment_id"]


def _bounds(fee: Row) -> tuple:
    return fee["commitment_start_at"] or fee["charge_start_at"], fee["commitment_end_at"] or fee["charge_end_at"]


def _term(fee: Row, day: date) -> Interval:
    start, end = _bounds(fee)
    return since_midnight(start, day), since_midnight(end, day)


def _running(fee: Row, column: str, until: int, day: date) -> int:
    """What of the fee is spent by a moment of the day."""
    start, end = _term(fee, day)
    return share(nano(fee[column]) or 0, clip(until, start, end) - start, end - start)


def _part(quantity: int | None, time: Interval, hour: int) -> int:
    return share(quantity or 0, overlap(time, hour_interval(hour)), time[1] - time[0])


def hours_since_1970(day: date, hour: int) -> int:
    return (day - date(1970, 1, 1)).days * (DAY // HOUR) + hour
