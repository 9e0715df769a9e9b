"""The oracle's books against the warehouse's tables, as differences that a person can read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from .exact import Row
from .oracle import AllocationKey, Billed, BilledKey, Books, PoolHour, PoolHourKey

TABLES = ("fct_cost_allocations", "fct_pool_hours", "fct_billed_costs")


def compare(books: Books, sql_rows: Mapping[str, Iterable[Row]]) -> list[str]:
    """One line per cell that differs; rows of other days and rows of zeros do not matter.

    `sql_rows` maps the names in TABLES to the warehouse's rows. Timestamps may be naive (then UTC).
    """
    expected = {
        "fct_cost_allocations": {key: (amount,) for key, amount in books.allocations.items()},
        "fct_pool_hours": books.pool_hours,
        "fct_billed_costs": books.billed,
    }
    found = {
        "fct_cost_allocations": _sums(
            (AllocationKey(*(row[name] for name in AllocationKey._fields)), (row["amount"],))
            for row in sql_rows["fct_cost_allocations"]
            if _day(row["usage_date"]) == books.day
        ),
        "fct_pool_hours": _sums(
            (
                PoolHourKey(row["pool_id"], row["component"], row["currency"], _utc(row["hour_at"]).hour),
                tuple(row[name] for name in PoolHour._fields),
            )
            for row in sql_rows["fct_pool_hours"]
            if _utc(row["hour_at"]).date() == books.day
        ),
        "fct_billed_costs": _sums(
            (
                BilledKey(*(row[name] for name in BilledKey._fields)),
                tuple(row[name] for name in Billed._fields),
            )
            for row in sql_rows["fct_billed_costs"]
            if _day(row["usage_date"]) == books.day
        ),
    }
    return [line for table in TABLES for line in _differences(table, expected[table], found[table])]


def _sums(rows: Iterable[tuple[Hashable, tuple[Decimal | None, ...]]]) -> dict[Hashable, tuple[Decimal, ...]]:
    sums: dict[Hashable, tuple[Decimal, ...]] = defaultdict(tuple)
    for key, amounts in rows:
        numbers = tuple(amount or Decimal(0) for amount in amounts)
        sums[key] = tuple(a + b for a, b in zip(sums[key] or (Decimal(0),) * len(numbers), numbers, strict=True))
    return {key: amounts for key, amounts in sums.items() if any(amounts)}


def _differences(table: str, expected: Mapping, found: Mapping) -> list[str]:
    fields = {"fct_pool_hours": PoolHour._fields, "fct_billed_costs": Billed._fields}.get(table, ("amount",))
    nothing = (None,) * len(fields)
    lines = []
    for key in sorted(expected.keys() | found.keys(), key=str):
        want, have = expected.get(key, nothing), found.get(key, nothing)
        cells = [
            f"{name} oracle {_text(ours)}, warehouse {_text(theirs)}"
            for name, ours, theirs in zip(fields, want, have, strict=True)
            if ours != theirs
        ]
        if cells:
            named = ", ".join(f"{name}={value}" for name, value in key._asdict().items() if value is not None)
            lines.append(f"{table} [{named}]: {'; '.join(cells)}")
    return lines


def _text(amount: Decimal | None) -> str:
    return "no row" if amount is None else f"{amount:.9f}"


def _utc(at: datetime) -> datetime:
    return at.astimezone(UTC) if at.tzinfo else at


def _day(value: date | datetime) -> date:
    return _utc(value).date() if isinstance(value, datetime) else value
