"""Books as the tests read them: of a world, summed by the fields that a question is about."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from .oracle import Books, Day, calculate, work_out
from .worlds import World, landed

NANO = Decimal("1e-9")


def books_of(world: World) -> Books:
    return calculate(landed(world), world.seeds, world.day)


def day_of(world: World) -> Day:
    return work_out(landed(world), world.seeds, world.day)


def by(books: Books, *fields: str) -> dict[tuple, Decimal]:
    """Allocated amounts per combination of the fields of `AllocationKey`."""
    sums: dict[tuple, Decimal] = defaultdict(Decimal)
    for key, amount in books.allocations.items():
        sums[tuple(getattr(key, field) for field in fields)] += amount
    return dict(sums)


def team_totals(books: Books) -> dict[str, Decimal]:
    return {team: amount for (team,), amount in by(books, "team_id").items()}
