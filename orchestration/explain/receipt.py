"""What a receipt says, read from the tables that `books` leaves: lines and their arithmetic, bills, hours, policies."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb

from orchestration.explain.books import rows, sql

COMPONENTS = ("gpu", "cpu", "memory", "energy", "storage", "network", "license", "support", "other")
KINDS = ("direct", "idle", "burst", "outcome_credit", "adjustment", "shared", "unattributed")
SHOWN_BILLS = 3


@dataclass(frozen=True)
class Step:
    """`whole` × `weight` ÷ `total` = `amount`: of `count` such hours or days the largest, or the one asked for."""

    step: str
    rule: str | None
    usage_date: date
    hour_at: datetime | None
    whole: Decimal
    weight: int
    running: int
    total: int
    unit: str | None
    per_unit: int
    less: Decimal | None
    amount: Decimal
    quotient: Decimal | None
    share_up_to: Decimal | None
    share_before: Decimal | None
    value: Decimal | None
    base: Decimal | None
    used_hours: Decimal | None
    entitled_hours: Decimal | None
    reach_unit: str | None
    weight_rows: list[str]
    count: int


@dataclass(frozen=True)
class Line:
    """One kind of cost of one pool and component, worked out again and as booked."""

    allocation_kind: str
    idle_cause: str | None
    recomputed: Decimal
    booked: Decimal
    differing_days: list[date]
    is_recomputed: bool
    """False where the facts do not hold what the rule looked at; then the amount is shown as booked."""
    policy_rows: list[str]
    reasons: list[str]
    counterparties: list[str]
    steps: list[Step]

    @property
    def agrees(self) -> bool:
        return not self.differing_days


@dataclass(frozen=True)
class Bill:
    description: str
    source_name: str
    cost_rule: str | None
    line_count: int
    cost: Decimal


@dataclass(frozen=True)
class Hours:
    """How the hours of a pool's component were spent, in sum."""

    hour_count: int
    cost: Decimal
    capacity: Decimal | None
    costs: dict[str, Decimal]
    quantities: dict[str, Decimal | None]


@dataclass(frozen=True)
class Weighing:
    """How the weight of a job came about in the hour that is shown."""

    usage_date: date
    hour_at: datetime
    held: Decimal
    held_unit: str
    workload_class: str
    class_weights: list[Decimal]
    weight_rows: list[str]
    activity: Decimal | None


@dataclass(frozen=True)
class Block:
    """A pool's component in one currency, on one day or over all days of the receipt."""

    usage_date: date | None
    pool_id: str
    component: str
    currency: str
    bills: list[Bill]
    billed: Decimal
    hours: Hours | None
    example: dict[str, Any] | None
    """The pool-hour that the first line's arithmetic is about."""
    weighing: Weighing | None
    recomputed: Decimal
    booked: Decimal
    lines: list[Line]

    @property
    def agrees(self) -> bool:
        return all(line.agrees for line in self.lines)


@dataclass(frozen=True)
class Total:
    currency: str
    recomputed: Decimal
    booked: Decimal
    as_booked: Decimal
    """What of it is not worked out, but shown as booked."""


@dataclass(frozen=True)
class Overview:
    """What a pool's component comes to over all days of the receipt, by kind of cost, as booked."""

    pool_id: str
    component: str
    currency: str
    direct: Decimal
    idle: Decimal
    transfers: Decimal
    shared: Decimal
    total: Decimal
    agrees: bool


@dataclass(frozen=True)
class Policy:
    policy_row: str
    settings: dict[str, Any]
    reason: str | None


@dataclass(frozen=True)
class Receipt:
    subject: Any
    days: list[date]
    stale_days: list[date]
    totals: list[Total]
    overview: list[Overview]
    blocks: list[Block]
    policies: dict[str, Policy]

    @property
    def agrees(self) -> bool:
        return all(block.agrees for block in self.blocks)


BLOCK = ("day", "pool_id", "component", "currency")
LINE = (*BLOCK, "allocation_kind", "idle_cause", "transfer_row")

LINES = """
select
    day, pool_id, component, currency,
    allocation_kind, idle_cause, transfer_row,
    sum(recomputed) as recomputed,
    sum(booked) as booked,
    bool_and(is_recomputed) as is_recomputed,
    coalesce(list(distinct usage_date) filter (recomputed <> booked), []) as differing_days,
    list_sort(list_distinct(coalesce(flatten(list(coalesce(policy_rows, recomputed_rows))), []))) as policy_rows,
    list_sort(list_distinct(coalesce(flatten(list(reasons)), []))) as reasons,
    list_sort(list_distinct(coalesce(flatten(list(counterparties)), []))) as counterparties
from lines
group by all
having sum(recomputed) <> 0 or sum(booked) <> 0 or len(differing_days) > 0
"""

STEPS = """
select
    steps.* exclude (part_number),
    count(*) over example as count
from steps
window example as (
    partition by day, pool_id, component, currency, allocation_kind, idle_cause, transfer_row, step, rule
)
qualify
    row_number() over (
        partition by day, pool_id, component, currency, allocation_kind, idle_cause, transfer_row, step, rule
        -- The hour that was asked for, else the one that matters most.
        order by coalesce(hour(hour_at) = $1, false) desc, abs(amount) desc, usage_date, hour_at, part_number
    ) = 1
"""

SUMS = """
select
    day, pool_id, component, currency,
    sum(recomputed) as recomputed,
    sum(booked) as booked,
    coalesce((
        select sum(cost) from bills
        where
            bills.pool_id = lines.pool_id and bills.component = lines.component and bills.currency = lines.currency
            and bills.day is not distinct from lines.day
    ), 0) as billed
from lines
group by all
"""

TOTALS = """
select
    currency,
    sum(recomputed) as recomputed,
    sum(booked) as booked,
    sum(case when is_recomputed then 0 else booked end) as as_booked
from lines
group by currency
order by currency desc
"""

OVERVIEW = """
select *
from (
    select
        pool_id, component, currency,
        sum(case when allocation_kind = 'direct' then booked else 0 end) as direct,
        sum(case when allocation_kind = 'idle' then booked else 0 end) as idle,
        sum(case when transfer_row is not null then booked else 0 end) as transfers,
        sum(case when allocation_kind in ('shared', 'unattributed') then booked else 0 end) as shared,
        sum(booked) as total,
        bool_and(recomputed = booked) as agrees
    from lines
    group by all
)
where direct <> 0 or idle <> 0 or transfers <> 0 or shared <> 0 or not agrees
order by max(abs(total)) over (partition by pool_id) desc, pool_id, abs(total) desc, component, currency
"""

BILLS = """
select
    day, pool_id, component, currency, description, source_name, cost_rule,
    sum(line_count)::bigint as line_count,
    sum(cost) as cost
from bills
group by all
order by abs(sum(cost)) desc, description
"""

CAUSES = ("used", "down", "reserved", "stranded", "unscheduled")
HOURS = f"""
select
    day, pool_id, component, currency,
    count(*) as hour_count,
    sum(cost) as cost,
    sum(capacity_hours) as capacity,
    {", ".join(f"sum({cause}_cost) as {cause}_cost, sum({cause}_hours) as {cause}_hours" for cause in CAUSES)}
from spent_hours
group by all
"""

STEP_ORDER = (
    "direct", "owned", "driver", "idle", "ceiling", "shared", "due", "carried", "borrowed", "lent", "lost",
    "percent", "rate", "amount", "funding",
)  # fmt: skip


def read(warehouse: duckdb.DuckDBPyConnection, subject: Any, by_day: bool, hour: int | None) -> Receipt:
    """Everything that the receipt says; `by_day` gives a block to each day, else the days are summed."""
    warehouse.execute("set variable by_day = ?", [by_day])
    for name in ("receipt", "facts", "policy_rows"):
        warehouse.execute(sql(name))
    days = rows(warehouse, "select usage_date, is_stale from days order by usage_date")
    blocks = _blocks(warehouse, hour, is_team=not hasattr(subject, "job_key"))
    return Receipt(
        subject=subject,
        days=[day["usage_date"] for day in days],
        stale_days=[day["usage_date"] for day in days if day["is_stale"]],
        totals=[Total(**row) for row in rows(warehouse, TOTALS)],
        overview=[Overview(**row) for row in rows(warehouse, OVERVIEW)],
        blocks=blocks,
        policies=_policies(warehouse, policy_rows_of(subject, blocks)),
    )


def _blocks(warehouse: duckdb.DuckDBPyConnection, hour: int | None, is_team: bool) -> list[Block]:
    steps: dict[tuple, list[Step]] = defaultdict(list)
    for row in rows(warehouse, STEPS, [hour]):
        # A team's burst ends with what it is due; only for a job is it carried further.
        if not (is_team and row["step"] == "carried"):
            steps[_key(row, LINE)].append(Step(**{name: row[name] for name in Step.__dataclass_fields__}))
    lines: dict[tuple, list[Line]] = defaultdict(list)
    for row in rows(warehouse, LINES):
        worked = sorted(steps[_key(row, LINE)], key=lambda step: STEP_ORDER.index(step.step))
        values = {name: row[name] for name in Line.__dataclass_fields__ if name != "steps"}
        lines[_key(row, BLOCK)].append(Line(**values, steps=worked))
    bills: dict[tuple, list[Bill]] = defaultdict(list)
    for row in rows(warehouse, BILLS):
        bills[_key(row, BLOCK)].append(Bill(**{name: row[name] for name in Bill.__dataclass_fields__}))
    hours = {_key(row, BLOCK): _hours(row) for row in rows(warehouse, HOURS)}
    sums = {_key(row, BLOCK): row for row in rows(warehouse, SUMS)}
    blocks = []
    for key, its_lines in lines.items():
        its_lines.sort(key=lambda line: (KINDS.index(line.allocation_kind), line.idle_cause or "", line.policy_rows))
        example = _example(warehouse, key, its_lines)
        blocks.append(
            Block(
                *key,
                bills=bills[key],
                billed=sums[key]["billed"],
                hours=hours.get(key),
                example=example,
                weighing=_weighing(warehouse, key, example) if example and not is_team else None,
                recomputed=sums[key]["recomputed"],
                booked=sums[key]["booked"],
                lines=its_lines,
            )
        )
    largest = {pool: max(abs(block.booked) for block in blocks if block.pool_id == pool) for _, pool, *_ in lines}
    return sorted(
        blocks,
        key=lambda block: (
            block.usage_date or date.min,
            -largest[block.pool_id],
            block.pool_id,
            COMPONENTS.index(block.component),
            block.currency,
        ),
    )


def _hours(row: dict[str, Any]) -> Hours:
    return Hours(
        hour_count=row["hour_count"],
        cost=row["cost"],
        capacity=row["capacity"],
        costs={cause: row[f"{cause}_cost"] for cause in CAUSES},
        quantities={cause: row[f"{cause}_hours"] for cause in CAUSES},
    )


def _example(warehouse: duckdb.DuckDBPyConnection, key: tuple, lines: list[Line]) -> dict[str, Any] | None:
    """The pool-hour of the first step that is about one: direct cost, else what comes first."""
    step = next((step for line in lines for step in line.steps if step.hour_at), None)
    if not step:
        return None
    _, pool_id, component, currency = key
    found = rows(
        warehouse,
        """
        select hour_at, cost, capacity_hours, used_hours, used_cost, rate from spent_hours
        where hour_at = ? and pool_id = ? and component = ? and currency = ?
        """,
        [step.hour_at, pool_id, component, currency],
    )
    return found[0] if found else None


def _weighing(warehouse: duckdb.DuckDBPyConnection, key: tuple, example: dict[str, Any]) -> Weighing | None:
    found = rows(
        warehouse,
        """
        select * exclude (pool_id, component) replace (coalesce(weight_rows, []) as weight_rows) from weighings
        where hour_at = ? and pool_id = ? and component = ?
        """,
        [example["hour_at"], key[1], key[2]],
    )
    return Weighing(**found[0]) if found else None


def policy_rows_of(subject: Any, blocks: Sequence[Block]) -> list[str]:
    """The policy rows that a receipt names, in the order in which it does."""
    named: list[str | None] = [getattr(subject, "payer_rule", None), getattr(subject, "workload_rule", None)]
    for block in blocks:
        named += [bill.cost_rule for bill in block.bills[:SHOWN_BILLS]]
        named += block.weighing.weight_rows if block.weighing else []
        for line in block.lines:
            named += [*line.policy_rows, *(row for step in line.steps for row in step.weight_rows)]
    return list(dict.fromkeys(name for name in named if name))


def _policies(warehouse: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, Policy]:
    found = {
        row["policy_row"]: Policy(row["policy_row"], json.loads(row["settings"] or "{}"), row["reason"])
        for row in rows(warehouse, "select * from policy_rows where list_contains(?, policy_row)", [names])
    }
    return {name: found.get(name, Policy(name, {}, None)) for name in names}


def _key(row: dict[str, Any], columns: tuple[str, ...]) -> tuple:
    return tuple(row[column] for column in columns)
