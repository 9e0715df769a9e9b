"""The books of one UTC day, worked out in plain Python from the rules in the documentation.

It shares no code with the SQL and is written to be read beside the description of the arithmetic: charges to
cells (`charges`), capacity, use and idle (`usage`, `energy`), then here who pays. `calculate` is the entry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from .charges import RESOURCES, ChargePart, charge_parts
from .energy import EnergyWeights, energy_weights
from .exact import (
    DAY,
    Row,
    absent_first,
    first_payer,
    money,
    most_specific,
    nano,
    round_half_away,
    share,
    since_midnight,
    split,
    valid_on,
)
from .usage import CAUSES, Payer, Usage, open_interval, time_on_day, usage_of_day

PLATFORM: Payer = ("platform", None, None, None)
UNATTRIBUTED: Payer = ("unattributed", None, None, None)


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


class PoolHourKey(NamedTuple):
    pool_id: str
    component: str
    currency: str
    hour: int


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


@dataclass(frozen=True)
class Books:
    """What the warehouse must hold for the day; rows of nothing but zeros are left out."""

    day: date
    allocations: dict[AllocationKey, Decimal]
    pool_hours: dict[PoolHourKey, PoolHour]
    billed: dict[BilledKey, Billed]


@dataclass
class Weights:
    """What a pool's component follows in one hour: jobs by payer, idle by cause."""

    jobs: dict[Payer, int]
    causes: dict[str, int]


Ledger = dict[AllocationKey, int]


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
    parts = charge_parts(tables, seeds, day)
    usage = usage_of_day(tables, seeds, day)
    energy = energy_weights(usage, tables["gpu_samples"], day, minimum_coverage)
    weights = weights_by_pool(usage, energy)

    ledger: Ledger = defaultdict(int)
    cost: dict[PoolHourKey, int] = defaultdict(int)
    for part in parts:
        if part.hour is not None:
            key = PoolHourKey(part.pool_id, part.component, part.currency, part.hour)
            cost[key] += allocatable(part, cost_basis)
    pool_hours = allocate_hours(ledger, cost, weights)
    allocate_idle(ledger, pool_hours, weights, valid_on(seeds["idle_policies"], day))

    drivers = Drivers(tables, seeds, day, usage, energy)
    daily = [part for part in parts if part.hour is None]
    shared = allocate_daily_direct(ledger, daily, cost_basis, drivers)
    allocate_overhead(ledger, shared, seeds, day, usage, reporting_currency)

    return Books(
        day,
        {key: money(amount) for key, amount in ledger.items() if amount},
        {key: PoolHour(*(money(amount) for amount in amounts)) for key, amounts in pool_hours.items() if any(amounts)},
        billed_costs(parts, cost_basis),
    )


def allocatable(part: ChargePart, cost_basis: str) -> int:
    return part.billed_cost if cost_basis == "billed" else part.effective_cost


def billed_costs(parts: list[ChargePart], cost_basis: str) -> dict[BilledKey, Billed]:
    """§1: per bill line, pool and component the sum over hours."""
    sums: dict[BilledKey, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for part in parts:
        total = sums[BilledKey(part.charge_key, part.pool_id, part.component)]
        costs = part.list_cost, part.billed_cost, part.effective_cost, allocatable(part, cost_basis)
        for index, amount in enumerate(costs):
            total[index] += amount
    return {key: Billed(*map(money, amounts)) for key, amounts in sums.items() if any(amounts)}


def give(
    ledger: Ledger,
    group: tuple[str, str, str],
    amount: int,
    weights: dict[Payer, int],
    kind: str,
    cause: str | None = None,
) -> None:
    """Split an amount of a (pool, component, currency) over payers and book the parts."""
    payers = sorted(weights, key=absent_first)
    for payer, part in zip(payers, split(amount, [weights[payer] for payer in payers]), strict=True):
        ledger[AllocationKey(*group, *payer, kind, cause)] += part


# --- §2 and §3: used cost to jobs --------------------------------------------------------------------------


def weights_by_pool(
    usage: Usage, energy: dict[tuple[str, str, str, int], EnergyWeights]
) -> dict[tuple[str, str], dict[int, Weights]]:
    """Per pool and component: the weights of each hour that has a node-hour."""
    found: dict[tuple[str, str], dict[int, Weights]] = defaultdict(dict)
    for key, node_hour in usage.node_hours.items():
        _, _, pool_id, hour = key
        sources = {resource: (node_hour.held[resource], node_hour.idle[resource]) for resource in RESOURCES}
        sources["energy"] = (energy[key].jobs, energy[key].causes)
        for component, (jobs, causes) in sources.items():
            total = found[pool_id, component].setdefault(hour, Weights(defaultdict(int), defaultdict(int)))
            for job_key, weight in jobs.items():
                total.jobs[usage.payers[job_key]] += weight
            for cause, weight in causes.items():
                total.causes[cause] += weight
    return found


def allocate_hours(
    ledger: Ledger, cost: dict[PoolHourKey, int], weights: dict[tuple[str, str], dict[int, Weights]]
) -> dict[PoolHourKey, list[int]]:
    """Cut each pool-hour's cost into used and idle by cause, and give the used part to the jobs."""
    pool_hours: dict[PoolHourKey, list[int]] = {}
    for key, amount in cost.items():
        group = key.pool_id, key.component, key.currency
        here = weights.get(group[:2], {}).get(key.hour, Weights({}, {}))
        sides = [sum(here.jobs.values()), *(here.causes.get(cause, 0) for cause in CAUSES)]
        if not any(sides):  # cost without known capacity
            ledger[AllocationKey(*group, *UNATTRIBUTED, "unattributed", None)] += amount
            pool_hours[key] = [amount, 0, 0, 0, 0, 0]
            continue
        used, *idle = split(amount, sides)
        pool_hours[key] = [amount, used, *idle]
        if any(here.jobs.values()):
            give(ledger, group, used, here.jobs, "direct")
    return pool_hours


# --- §4: idle cost to payers -------------------------------------------------------------------------------


def allocate_idle(
    ledger: Ledger,
    pool_hours: dict[PoolHourKey, list[int]],
    weights: dict[tuple[str, str], dict[int, Weights]],
    policies: list[Row],
) -> None:
    by_group: dict[tuple[str, str, str], dict[int, list[int]]] = defaultdict(dict)
    for key, (_, _, *idle) in pool_hours.items():
        by_group[key.pool_id, key.component, key.currency][key.hour] = idle

    for group, hours in by_group.items():
        hourly = weights.get(group[:2], {})
        of_day: dict[Payer, int] = defaultdict(int)
        for hour_weights in hourly.values():
            for payer, weight in hour_weights.jobs.items():
                of_day[payer] += weight
        for index, cause in enumerate(CAUSES):
            policy = most_specific(policies, "idle_cause", group[0], cause)
            proportional = policy is None or policy["policy"] == "proportional"
            by_hour = policy is not None and policy["idle_window"] == "hour"
            amounts = {hour: idle[index] for hour, idle in hours.items()}
            if not proportional or not any(of_day.values()):
                ledger[AllocationKey(*group, *PLATFORM, "idle", cause)] += sum(amounts.values())
            elif by_hour:
                for hour, amount in amounts.items():
                    jobs = hourly[hour].jobs if hour in hourly else {}
                    give(ledger, group, amount, jobs if any(jobs.values()) else of_day, "idle", cause)
            else:
                give(ledger, group, sum(amounts.values()), of_day, "idle", cause)


# --- §6: components without capacity -----------------------------------------------------------------------


class Drivers:
    """The quantities that daily components follow, per payer."""

    def __init__(
        self,
        tables: dict[str, list[Row]],
        seeds: dict[str, list[Row]],
        day: date,
        usage: Usage,
        energy: dict[tuple[str, str, str, int], EnergyWeights],
    ) -> None:
        self.tables, self.day, self.usage, self.energy = tables, day, usage, energy
        self.rules = valid_on(seeds["payer_rules"], day)
        self.pools = {row["pool_id"]: row for row in valid_on(seeds["pools"], day)}
        self.served_by = {part.job_key: (part.cluster_id, part.partition) for part in usage.parts}

    def quantities(self, driver: str | None, pool_id: str) -> dict[Payer, int]:
        if driver == "gib_hours_stored":
            return self._stored(pool_id)
        if driver == "seat_hours":
            return self._seats(pool_id)
        if driver == "bytes_out":
            return self._bytes_out(pool_id)
        resources = {"gpu_seconds": "gpu", "cpu_core_seconds": "cpu", "memory_gib_seconds": "memory"}
        if driver in resources:
            resource = resources[driver]
            return self._jobs(pool_id, lambda key: self.usage.node_hours[key].held[resource])
        if driver == "kwh":
            return self._jobs(pool_id, lambda key: self.energy[key].jobs if self.energy[key].is_energy else {})
        return {}

    def _payer(self, subject: Row, user: str | None) -> Payer:
        team, project = first_payer(self.rules, subject) or ("unattributed", None)
        return team, project, user, None

    def _resource(self, pool_id: str) -> str | None:
        return self.pools.get(pool_id, {}).get("resource")

    def _serves(self, pool_id: str, cluster_id: str, partition: str | None) -> bool:
        """Does the pool serve jobs of this cluster and partition? What it leaves open, it serves all of."""
        pool = self.pools.get(pool_id)
        if pool is None:
            return False
        return pool["cluster_id"] in (None, cluster_id) and pool["partition"] in (None, partition)

    def _stored(self, pool_id: str) -> dict[Payer, int]:
        found: dict[Payer, int] = defaultdict(int)
        for row in self.tables["storage_usage"]:
            if row["filesystem"] == self._resource(pool_id):
                ends = since_midnight(row["valid_to_at"], self.day)
                present = time_on_day((since_midnight(row["valid_from_at"], self.day), ends))
                subject = {"account": row["account"], "user_name": row["owner"], "path": row["path"]}
                mebibytes = round_half_away(row["stored_bytes"], 1_048_576)
                found[self._payer(subject, row["owner"])] += mebibytes * present
        return found

    def _seats(self, pool_id: str) -> dict[Payer, int]:
        found: dict[Payer, int] = defaultdict(int)
        for row in self.tables["license_usage"]:
            if row["product"] == self._resource(pool_id):
                present = time_on_day(open_interval(row, "checked_out_at", "checked_in_at", self.day))
                subject = {"account": row["account"], "user_name": row["user_name"]}
                found[self._payer(subject, row["user_name"])] += row["seats"] * present
        return found

    def _bytes_out(self, pool_id: str) -> dict[Payer, int]:
        found: dict[Payer, int] = defaultdict(int)
        for part in self.usage.parts:
            if self._serves(pool_id, part.cluster_id, part.partition):
                start, end = part.interval
                if start == end:
                    sent = part.bytes_out if 0 <= start < DAY else 0
                else:
                    sent = share(part.bytes_out, time_on_day(part.interval), end - start)
                found[self.usage.payers[part.job_key]] += sent
        return found

    def _jobs(self, pool_id: str, by_job: Callable[[tuple[str, str, str, int]], dict[str, int]]) -> dict[Payer, int]:
        """A compute pool (or one that no seed describes) counts its own node-hours, others those served."""
        own = self.pools.get(pool_id, {}).get("pool_kind", "compute") == "compute"
        found: dict[Payer, int] = defaultdict(int)
        for key in self.usage.node_hours:
            for job_key, quantity in by_job(key).items():
                if (key[2] == pool_id) if own else self._serves(pool_id, *self.served_by[job_key]):
                    found[self.usage.payers[job_key]] += quantity
        return found


def allocate_daily_direct(
    ledger: Ledger, parts: list[ChargePart], cost_basis: str, drivers: Drivers
) -> dict[tuple[str, str, str, str | None], int]:
    """Owned lines to their owners, the others by their driver; returns what neither of them took."""
    pending: dict[tuple[str, str, str, str | None], int] = defaultdict(int)
    for part in parts:
        group = part.pool_id, part.component, part.currency
        if part.owner:
            key = AllocationKey(*group, *part.owner, None, None, "direct", None)
            ledger[key] += allocatable(part, cost_basis)
        else:
            pending[*group, part.driver] += allocatable(part, cost_basis)

    shared = {}
    for (*group, driver), amount in pending.items():
        quantities = drivers.quantities(driver, group[0])
        if any(quantities.values()):
            give(ledger, tuple(group), amount, quantities, "direct")
        else:
            shared[*group, driver] = amount
    return shared


def allocate_overhead(
    ledger: Ledger,
    shared: dict[tuple[str, str, str, str | None], int],
    seeds: dict[str, list[Row]],
    day: date,
    usage: Usage,
    reporting_currency: str,
) -> None:
    policies = valid_on(seeds["allocation_policies"], day)
    bases = {
        "direct_cost": direct_cost_base(ledger, valid_on(seeds["currencies"], day), reporting_currency),
        "gpu_hours": gpu_hours_base(usage),
    }
    for (*group, _), amount in shared.items():
        policy = most_specific(policies, "component", group[0], group[1])
        base = policy["overhead_base"] if policy else None
        if not base:
            ledger[AllocationKey(*group, *UNATTRIBUTED, "unattributed", None)] += amount
        elif any(bases[base].values()):
            give(ledger, tuple(group), amount, bases[base], "shared")
        else:
            ledger[AllocationKey(*group, *PLATFORM, "shared", None)] += amount


def direct_cost_base(ledger: Ledger, currencies: list[Row], reporting_currency: str) -> dict[Payer, int]:
    """Each team and project's direct cost of the day in the reporting currency, never below zero."""
    rates = {reporting_currency: nano(Decimal(1))}
    rates |= {row["currency"]: nano(row["rate_to_reporting"]) for row in currencies}
    per_currency: dict[tuple[str, str | None, str], int] = defaultdict(int)
    for key, amount in ledger.items():
        if key.allocation_kind == "direct" and key.team_id != "platform":
            per_currency[key.team_id, key.project_id, key.currency] += amount
    base: dict[Payer, int] = defaultdict(int)
    for (team, project, currency), amount in per_currency.items():
        base[team, project, None, None] += round_half_away(amount * rates.get(currency, 0), 10**9)
    return {payer: max(0, amount) for payer, amount in base.items()}


def gpu_hours_base(usage: Usage) -> dict[Payer, int]:
    base: dict[Payer, int] = defaultdict(int)
    for node_hour in usage.node_hours.values():
        for job_key, held in node_hour.held["gpu"].items():
            team, project, _, _ = usage.payers[job_key]
            base[team, project, None, None] += held
    return base
