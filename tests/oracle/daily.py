"""ALLOCATION §6: components without capacity, by owner, by driver, or as overhead."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import date
from decimal import Decimal

from .charges import ChargePart
from .energy import EnergyWeights
from .exact import (
    DAY,
    Row,
    first_payer,
    nano,
    round_half_away,
    share,
    since_midnight,
    valid_on,
)
from .ledger import PLATFORM, UNATTRIBUTED, Group, Ledger, book, divide, team_payer
from .usage import Payer, Usage, open_interval, time_on_day
from .weights import allocation_policy


def allocatable(part: ChargePart, cost_basis: str) -> int:
    return part.billed_cost if cost_basis == "billed" else part.effective_cost


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


# --- owners and drivers ------------------------------------------------------------------------------------


def allocate_daily_direct(
    ledger: Ledger, parts: list[ChargePart], cost_basis: str, drivers: Drivers
) -> dict[tuple[Group, str | None], int]:
    """Owned lines to their owners, the others by their driver; returns what neither of them took."""
    pending: dict[tuple[Group, str | None], int] = defaultdict(int)
    for part in parts:
        group = part.pool_id, part.component, part.currency
        if part.owner:
            book(ledger, group, {(*part.owner, None, None): allocatable(part, cost_basis)}, "direct")
        else:
            pending[group, part.driver] += allocatable(part, cost_basis)

    shared = {}
    for (group, driver), amount in pending.items():
        quantities = drivers.quantities(driver, group[0])
        if any(quantities.values()):
            book(ledger, group, divide(amount, quantities), "direct")
        else:
            shared[group, driver] = amount
    return shared


# --- overhead ----------------------------------------------------------------------------------------------


class OverheadBases:
    """What overhead can follow; the direct cost is that of the ledger as it stands."""

    def __init__(self, ledger: Ledger, seeds: dict[str, list[Row]], day: date, usage: Usage, rates: Row) -> None:
        self.direct_cost = direct_cost_base(ledger, rates)
        self.gpu_hours = gpu_hours_base(usage)
        teams = valid_on(seeds["teams"], day)
        self.headcount = {team_payer(row["team_id"]): int(row["headcount"] or 0) for row in teams}
        self.shares = valid_on(seeds["overhead_shares"], day)

    def weights(self, base: str, pool_id: str) -> dict[Payer, int]:
        if base == "fixed":
            own = [row for row in self.shares if row["pool_id"] == pool_id]
            rows = own or [row for row in self.shares if row["pool_id"] == "*"]
            return {team_payer(row["team_id"]): nano(row["share"]) or 0 for row in rows}
        return {"direct_cost": self.direct_cost, "gpu_hours": self.gpu_hours, "headcount": self.headcount}[base]


def allocate_overhead(
    ledger: Ledger,
    shared: dict[tuple[Group, str | None], int],
    seeds: dict[str, list[Row]],
    day: date,
    usage: Usage,
    rates: Row,
) -> None:
    policies = valid_on(seeds["allocation_policies"], day)
    bases = OverheadBases(ledger, seeds, day, usage, rates)
    for (group, _), amount in shared.items():
        base = allocation_policy(policies, group[0], group[1])["overhead_base"]
        if not base:
            book(ledger, group, {UNATTRIBUTED: amount}, "unattributed")
        else:
            book(ledger, group, divide(amount, bases.weights(base, group[0]), PLATFORM), "shared")


def exchange_rates(seeds: dict[str, list[Row]], day: date, reporting_currency: str) -> Row:
    """Nano-units of the reporting currency for one unit of each."""
    rates = {reporting_currency: nano(Decimal(1))}
    return rates | {row["currency"]: nano(row["rate_to_reporting"]) for row in valid_on(seeds["currencies"], day)}


def in_reporting_currency(rows: Ledger, rates: Row) -> dict[Payer, int]:
    """The rows summed per team and project, never below zero; each currency is rounded once."""
    per_currency: dict[tuple[str, str | None, str], int] = defaultdict(int)
    for key, amount in rows.items():
        per_currency[key.team_id, key.project_id, key.currency] += amount
    base: dict[Payer, int] = defaultdict(int)
    for (team, project, currency), amount in per_currency.items():
        base[team, project, None, None] += round_half_away(amount * rates.get(currency, 0), 10**9)
    return {payer: max(0, amount) for payer, amount in base.items()}


def direct_cost_base(ledger: Ledger, rates: Row) -> dict[Payer, int]:
    direct = {
        key: amount for key, amount in ledger.items() if key.allocation_kind == "direct" and key.team_id != PLATFORM[0]
    }
    return in_reporting_currency(direct, rates)


def gpu_hours_base(usage: Usage) -> dict[Payer, int]:
    base: dict[Payer, int] = defaultdict(int)
    for node_hour in usage.node_hours.values():
        for job_key, held in node_hour.held["gpu"].items():
            team, project, _, _ = usage.payers[job_key]
            base[team, project, None, None] += held
    return base
