"""The books of one UTC day, worked out in plain Python from the rules in the documentation.

It shares no code with the SQL and is written to be read beside the description of the arithmetic: charges to
cells (`charges`), capacity, use and idle (`usage`, `energy`), what jobs weigh (`workloads`, `weights`), who pays for
idle capacity (`idle`) and for what has none (`daily`), and what is moved afterwards (`transfers`, `adjustments`).
`calculate` is the entry; `work_out` gives the same day with its intermediate steps.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from .adjustments import book_adjustments
from .charges import ChargePart, charge_parts
from .daily import Drivers, allocatable, allocate_daily_direct, allocate_overhead, exchange_rates
from .energy import energy_weights
from .exact import Row, money, split, valid_on
from .idle import IdleRules, allocate_idle
from .ledger import (
    UNATTRIBUTED,
    AllocationKey,
    Billed,
    BilledKey,
    HourlyParts,
    Ledger,
    PoolHour,
    PoolHourKey,
    book,
    divide,
)
from .transfers import book_burst, book_lender_credit, book_outcome_credit
from .usage import CAUSES, Usage, usage_of_day
from .weights import PoolWeights, Weigher, Weights
from .workloads import job_classes

__all__ = [
    "AllocationKey",
    "Billed",
    "BilledKey",
    "Books",
    "Day",
    "PoolHour",
    "PoolHourKey",
    "calculate",
    "work_out",
]


@dataclass(frozen=True)
class Books:
    """What the warehouse must hold for the day; rows of nothing but zeros are left out."""

    day: date
    allocations: dict[AllocationKey, Decimal]
    pool_hours: dict[PoolHourKey, PoolHour]
    billed: dict[BilledKey, Billed]


@dataclass(frozen=True)
class Day:
    """The steps on the way to the books; money in nano-units."""

    usage: Usage
    classes: dict[str, str]
    """Workload class by job key."""
    weights: PoolWeights
    pool_hours: dict[PoolHourKey, list[int]]
    """Cost, used, then idle by cause."""
    direct: HourlyParts
    """What each pool-hour's used cost gave to the jobs."""
    books: Books


def calculate(
    tables: dict[str, list[Row]],
    seeds: dict[str, list[Row]],
    day: date,
    *,
    cost_basis: str = "effective",
    reporting_currency: str = "USD",
    minimum_coverage: int = 500,
) -> Books:
    """The books of a day from the records landed on it and the policy tables."""
    return work_out(
        tables,
        seeds,
        day,
        cost_basis=cost_basis,
        reporting_currency=reporting_currency,
        minimum_coverage=minimum_coverage,
    ).books


def work_out(
    tables: dict[str, list[Row]],
    seeds: dict[str, list[Row]],
    day: date,
    *,
    cost_basis: str = "effective",
    reporting_currency: str = "USD",
    minimum_coverage: int = 500,
) -> Day:
    parts = charge_parts(tables, seeds, day)
    usage = usage_of_day(tables, seeds, day)
    energy = energy_weights(usage, tables["gpu_samples"], day, minimum_coverage)
    classes = job_classes(tables["jobs"], valid_on(seeds["workload_rules"], day))
    weights = Weigher(tables, seeds, day, usage, energy, classes).weigh()
    rates = exchange_rates(seeds, day, reporting_currency)

    ledger: Ledger = defaultdict(int)
    cost: dict[PoolHourKey, int] = defaultdict(int)
    for part in parts:
        if part.hour is not None:
            key = PoolHourKey(part.pool_id, part.component, part.currency, part.hour)
            cost[key] += allocatable(part, cost_basis)
    pool_hours, direct = allocate_hours(ledger, cost, weights)
    allocate_idle(ledger, pool_hours, IdleRules.of_day(seeds, day, usage, weights))

    drivers = Drivers(tables, seeds, day, usage, energy)
    daily = [part for part in parts if part.hour is None]
    shared = allocate_daily_direct(ledger, daily, cost_basis, drivers)
    allocate_overhead(ledger, shared, seeds, day, usage, rates)

    burst = book_burst(ledger, seeds, day, direct, weights)
    book_lender_credit(ledger, seeds, day, pool_hours, weights, usage)
    book_outcome_credit(ledger, tables, seeds, day, usage, classes, direct, burst)
    book_adjustments(ledger, seeds, day, usage, classes, rates)

    books = Books(
        day,
        {key: money(amount) for key, amount in ledger.items() if amount},
        {key: PoolHour(*(money(amount) for amount in amounts)) for key, amounts in pool_hours.items() if any(amounts)},
        billed_costs(parts, cost_basis),
    )
    return Day(usage, classes, weights, pool_hours, direct, books)


def billed_costs(parts: list[ChargePart], cost_basis: str) -> dict[BilledKey, Billed]:
    """§1: per bill line, pool and component the sum over hours."""
    sums: dict[BilledKey, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for part in parts:
        total = sums[BilledKey(part.charge_key, part.pool_id, part.component)]
        costs = part.list_cost, part.billed_cost, part.effective_cost, allocatable(part, cost_basis)
        for index, amount in enumerate(costs):
            total[index] += amount
    return {key: Billed(*map(money, amounts)) for key, amounts in sums.items() if any(amounts)}


def allocate_hours(
    ledger: Ledger, cost: dict[PoolHourKey, int], weights: PoolWeights
) -> tuple[dict[PoolHourKey, list[int]], HourlyParts]:
    """§2 and §3: cut each pool-hour's cost into used and idle by cause, and give the used part to the jobs."""
    pool_hours: dict[PoolHourKey, list[int]] = {}
    direct: HourlyParts = {}
    for key, amount in cost.items():
        here = weights.get((key.pool_id, key.component), {}).get(key.hour, Weights())
        sides = [sum(here.held.values()), *(here.causes.get(cause, 0) for cause in CAUSES)]
        if not any(sides):  # cost without known capacity
            book(ledger, key.group, {UNATTRIBUTED: amount}, "unattributed")
            pool_hours[key] = [amount, 0, 0, 0, 0, 0]
            continue
        used, *idle = split(amount, sides)
        pool_hours[key] = [amount, used, *idle]
        if here.jobs:
            direct[key] = divide(used, here.jobs)
            book(ledger, key.group, direct[key], "direct")
    return pool_hours, direct
