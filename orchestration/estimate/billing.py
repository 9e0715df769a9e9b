"""What BigQuery bills for a query on demand, from the bytes of the columns and partitions that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from orchestration.dbt import Window
from orchestration.estimate.queries import Plan, Step, lasting
from orchestration.estimate.scans import EVER, Read
from orchestration.estimate.sizes import Bytes, Sizes

MIB = 2**20
TIB = 2**40
MINIMUM = 10 * MIB
"""The least that is billed for each table that a query names, however little of it is read."""
PRICE_PER_TIB = Decimal("6.25")
"""USD on demand in the US. Other locations and contracts differ, and the free TiB of each month is not taken off."""


@dataclass(frozen=True)
class Bill:
    """What one model or test reads, and what is billed for it."""

    name: str
    kind: str
    layer: str
    tables: int
    """How many times a table is billed: once for each query that reads it."""
    scanned: int
    billed: int
    reads_all_days: bool = False
    """Whether it grows with the history: some laws are about all that was ever billed."""

    @property
    def padding(self) -> int:
        """The part of the bill that is no data but the minimum per table, and rounding."""
        return self.billed - self.scanned


@dataclass(frozen=True)
class Estimate:
    window: Window
    price_per_tib: Decimal
    bills: Sequence[Bill]
    sizes: Sizes

    def of(self, kind: str) -> list[Bill]:
        return [bill for bill in self.bills if bill.kind == kind]

    def of_the_days(self) -> list[Bill]:
        """What a run of these days costs, however long the history is."""
        return [bill for bill in self.bills if not bill.reads_all_days]

    def of_all_days(self) -> list[Bill]:
        return [bill for bill in self.bills if bill.reads_all_days]

    def price(self, billed: int) -> Decimal:
        return billed * self.price_per_tib / TIB


def estimated(plan: Plan, sizes: Sizes, window: Window, price_per_tib: Decimal = PRICE_PER_TIB) -> Estimate:
    return Estimate(window, price_per_tib, [_bill(step, plan, sizes) for step in plan.steps], sizes)


def _bill(step: Step, plan: Plan, sizes: Sizes) -> Bill:
    by_table = [scanned_by_table(query, sizes) for query in step.queries]
    return Bill(
        step.name,
        step.kind,
        step.layer,
        tables=sum(map(len, by_table)),
        scanned=sum(sum(tables.values()) for tables in by_table),
        billed=sum(billed(tables.values()) for tables in by_table),
        reads_all_days=any(
            read.days == EVER and plan.tables[read.relation].partition_column is not None
            for query in step.queries
            for read in query
        ),
    )


def billed(scanned: Iterable[int]) -> int:
    """One query, by the bytes that it reads of each table: at least the minimum for each, rounded up to a MiB."""
    total = sum(max(one, MINIMUM) for one in scanned)
    return -(-total // MIB) * MIB


def scanned_by_table(query: Iterable[Read], sizes: Sizes) -> dict[str, int]:
    by_table: dict[str, list[Read]] = {}
    for read in query:
        by_table.setdefault(read.relation, []).append(read)
    return {name: _scanned(reads, sizes.bytes.get(lasting(name), {})) for name, reads in by_table.items()}


def _scanned(reads: Sequence[Read], sizes: Bytes) -> int:
    """A column of a partition counts once, however many places of the query read it."""
    total = 0
    for part, columns in sizes.items():
        covering = [read.columns for read in reads if part is None or read.days.start <= part < read.days.end]
        total += sum(columns[name] for name in frozenset().union(*covering))
    return total
