"""The books while they are written: who pays what for which pool and component, in nano-units."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from .exact import absent_first, split
from .usage import Payer

PLATFORM: Payer = ("platform", None, None, None)
UNATTRIBUTED: Payer = ("unattributed", None, None, None)

Group = tuple[str, str, str]
"""Pool, component, currency."""


class AllocationKey(NamedTuple):
    pool_id: str
    component: str
    currency: str
    team_id: str
    project_id: str | None
    user_name: str | None
    job_key: str | None
    allocation_kind: str
    idle_cause: str | None

    @property
    def group(self) -> Group:
        return self.pool_id, self.component, self.currency

    @property
    def payer(self) -> Payer:
        return self.team_id, self.project_id, self.user_name, self.job_key


class PoolHourKey(NamedTuple):
    pool_id: str
    component: str
    currency: str
    hour: int

    @property
    def group(self) -> Group:
        return self.pool_id, self.component, self.currency


class PoolHour(NamedTuple):
    cost: Decimal
    used_cost: Decimal
    down_cost: Decimal
    reserved_cost: Decimal
    stranded_cost: Decimal
    unscheduled_cost: Decimal


class BilledKey(NamedTuple):
    charge_key: str
    pool_id: str
    component: str


class Billed(NamedTuple):
    list_cost: Decimal
    billed_cost: Decimal
    effective_cost: Decimal
    allocatable_cost: Decimal


Ledger = dict[AllocationKey, int]
Parts = dict[Payer, int]
"""What each payer gets of an amount."""
HourlyParts = dict[PoolHourKey, Parts]


def team_payer(team: str) -> Payer:
    return team, None, None, None


def divide(amount: int, weights: Mapping[Payer, int], fallback: Payer = PLATFORM) -> Parts:
    """Split an amount over payers in their order; where nobody has weight the fallback takes it."""
    payers = sorted(weights, key=absent_first)
    if not any(weights[payer] > 0 for payer in payers):
        return {fallback: amount}
    return dict(zip(payers, split(amount, [weights[payer] for payer in payers]), strict=True))


def book(ledger: Ledger, group: Group, parts: Parts, kind: str, cause: str | None = None) -> None:
    for payer, amount in parts.items():
        ledger[AllocationKey(*group, *payer, kind, cause)] += amount
