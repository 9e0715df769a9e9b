"""ALLOCATION §5.4: adjustments that people approved, moved between the payers of a scope and whoever funds them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date

from .daily import in_reporting_currency
from .exact import HOUR, Row, nano, round_half_away, share, valid_on
from .idle import by_team
from .ledger import PLATFORM, Group, Ledger, Parts, book, divide, team_payer
from .usage import GPU_UNITS, Payer, Usage

Change = tuple[Group, Parts]
"""What the payers of a scope get in one pool, component and currency."""


class Adjuster:
    """Reads the books as they stand when it is made, so that adjustments do not see each other."""

    def __init__(
        self, ledger: Ledger, seeds: dict[str, list[Row]], day: date, usage: Usage, classes: dict[str, str], rates: Row
    ) -> None:
        self.rows = {key: amount for key, amount in ledger.items() if amount}
        self.day, self.classes, self.rates = day, classes, rates
        self.teams = valid_on(seeds["teams"], day)
        self.families: dict[str, set[str]] = {}
        self.team_of = {row["project_id"]: row["team_id"] for row in valid_on(seeds["projects"], day)}
        self.gpu_time: dict[str, dict[Payer, int]] = defaultdict(lambda: defaultdict(int))
        for (_, _, pool_id, _), node_hour in usage.node_hours.items():
            for job_key, held in node_hour.held["gpu"].items():
                self.gpu_time[pool_id][usage.payers[job_key]] += held

    # --- whose cost changes --------------------------------------------------------------------------------

    def family(self, team_id: str) -> set[str]:
        """A team and all below it."""
        if team_id not in self.families:
            members = {team_id}
            while below := {row["team_id"] for row in self.teams if row["parent_team_id"] in members} - members:
                members |= below
            self.families[team_id] = members
        return self.families[team_id]

    def includes(self, adjustment: Row, payer: Payer) -> bool:
        team, project, _, job_key = payer
        return (
            (not adjustment["team_id"] or team in self.family(adjustment["team_id"]))
            and (not adjustment["project_id"] or project == adjustment["project_id"])
            and (not adjustment["workload_class"] or self.classes.get(job_key or "") == adjustment["workload_class"])
        )

    def costs(self, adjustment: Row) -> dict[Group, Parts]:
        """What the payers of the scope pay so far."""
        found: dict[Group, Parts] = defaultdict(lambda: defaultdict(int))
        for key, amount in self.rows.items():
            fields = ("pool_id", "component", "currency")
            here = all(not adjustment[name] or adjustment[name] == getattr(key, name) for name in fields)
            if here and self.includes(adjustment, key.payer):
                found[key.group][key.payer] += amount
        return found

    def changes(self, adjustment: Row) -> Iterator[Change]:
        kind, value = adjustment["adjustment_kind"], nano(adjustment["value"]) or 0
        if kind == "percent":
            for group, costs in self.costs(adjustment).items():
                total = sum(costs.values())
                sign = (total > 0) - (total < 0)
                if total:
                    amount = round_half_away(value * total, 100 * 10**9)
                    yield group, divide(amount, {payer: cost * sign for payer, cost in costs.items()})
        elif kind == "rate":
            yield from self.rate_changes(adjustment, value)
        else:
            yield from self.amount_changes(adjustment, value)

    def rate_changes(self, adjustment: Row, value: int) -> Iterator[Change]:
        group = adjustment["pool_id"], "gpu", adjustment["currency"]
        costs = self.costs(adjustment | {"component": "gpu"}).get(group, {})
        held = {
            payer: time
            for payer, time in self.gpu_time.get(adjustment["pool_id"], {}).items()
            if time > 0 and self.includes(adjustment, payer)
        }
        target = round_half_away(value * sum(held.values()), GPU_UNITS * HOUR)
        targets = divide(target, held) if held else {}
        payers = costs.keys() | held.keys()
        if payers:
            yield group, {payer: targets.get(payer, 0) - costs.get(payer, 0) for payer in payers}

    def amount_changes(self, adjustment: Row, value: int) -> Iterator[Change]:
        """The day's part of a sum over the whole validity. A class that nobody ran on the day moves nothing."""
        elapsed = (self.day - adjustment["valid_from"]).days
        days = (adjustment["valid_to"] - adjustment["valid_from"]).days
        amount = share(value, elapsed + 1, days) - share(value, elapsed, days)
        group = "none", "other", adjustment["currency"]
        team, project = adjustment["team_id"], adjustment["project_id"]
        if project:
            yield group, {(self.team_of[project], project, None, None): amount}
        elif team:
            yield group, {team_payer(team): amount}
        else:
            direct = {key: paid for key, paid in self.direct().items() if self.includes(adjustment, key.payer)}
            payers = in_reporting_currency(direct, self.rates)
            if any(payers.values()):
                yield group, divide(amount, payers)

    # --- who funds it --------------------------------------------------------------------------------------

    def direct(self) -> Ledger:
        return {key: amount for key, amount in self.rows.items() if key.allocation_kind == "direct"}

    def funding(self, adjustment: Row, group: Group, change: Parts) -> Parts:
        total, funded_by = sum(change.values()), adjustment["funded_by"]
        if funded_by == PLATFORM[0]:
            return {PLATFORM: -total}
        if funded_by != "all":
            return {team_payer(funded_by): -total}
        direct = self.direct()
        if group[0] == "none":
            base = in_reporting_currency(direct, self.rates)
        else:
            base = {key.payer: amount for key, amount in direct.items() if key.group == group}
        inside = {payer[0] for payer in change} | {PLATFORM[0]}
        if adjustment["team_id"]:
            inside |= set(self.family(adjustment["team_id"]))
        return divide(-total, {team: amount for team, amount in by_team(base).items() if team[0] not in inside})

    def book(self, ledger: Ledger, adjustment: Row) -> None:
        for group, change in self.changes(adjustment):
            book(ledger, group, change, "adjustment")
            book(ledger, group, self.funding(adjustment, group, change), "adjustment")


def book_adjustments(
    ledger: Ledger, seeds: dict[str, list[Row]], day: date, usage: Usage, classes: dict[str, str], rates: Row
) -> None:
    adjuster = Adjuster(ledger, seeds, day, usage, classes, rates)
    for adjustment in valid_on(seeds["adjustments"], day):
        adjuster.book(ledger, adjustment)
