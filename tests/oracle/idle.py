"""ALLOCATION §4: who pays for idle capacity, by cause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from .charges import RESOURCES
from .exact import Row, absent_first, most_specific, nano, round_half_away, scaled, split, valid_on
from .ledger import PLATFORM, Group, Ledger, Parts, PoolHourKey, book, divide, team_payer
from .usage import CAUSES, GPU_UNITS, Payer, Usage
from .weights import PoolWeights, Weights, allocation_policy


def entitled_units(seeds: dict[str, list[Row]], day: date) -> dict[str, dict[str, int]]:
    """Per pool the GPU units that each team is entitled to."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in valid_on(seeds["entitlements"], day):
        found[row["pool_id"]][row["team_id"]] += scaled(row["gpus"], GPU_UNITS)
    return found


def reserved_by_team(usage: Usage) -> dict[tuple[str, int], dict[str, dict[Payer, int]]]:
    """Per pool-hour and resource the idle time under reservations, divided over the teams that reserved it."""
    found: dict[tuple[str, int], dict[str, dict[Payer, int]]] = defaultdict(
        lambda: {resource: defaultdict(int) for resource in RESOURCES}
    )
    for (_, _, pool_id, hour), node_hour in usage.node_hours.items():
        for resource in RESOURCES:
            wanted = {team_payer(team): times[resource] for team, times in node_hour.reserved_by.items()}
            if any(wanted.values()):
                for payer, part in divide(node_hour.idle[resource]["reserved"], wanted).items():
                    found[pool_id, hour][resource][payer] += part
    return found


def airport(amount: int, demands: Mapping[Payer, int]) -> Parts:
    """The Shapley value of the airport game: each step of demand is shared by those who reach at least that high."""
    steps = sorted({demand for demand in demands.values() if demand > 0})
    heights = [upper - lower for lower, upper in zip([0, *steps], steps, strict=False)]
    parts: Parts = defaultdict(int)
    for step, part in zip(steps, split(amount, heights), strict=True):
        takers = {payer: 1 for payer, demand in demands.items() if demand >= step}
        for payer, its_part in divide(part, takers).items():
            parts[payer] += its_part
    return parts


@dataclass
class IdleRules:
    """The policy tables and the quantities that the rules of idle cost read."""

    idle_policies: list[Row]
    allocation_policies: list[Row]
    owners: dict[str, str | None]
    entitled: dict[str, dict[str, int]]
    reserved: dict[tuple[str, int], dict[str, dict[Payer, int]]]
    weights: PoolWeights

    @classmethod
    def of_day(cls, seeds: dict[str, list[Row]], day: date, usage: Usage, weights: PoolWeights) -> IdleRules:
        return cls(
            valid_on(seeds["idle_policies"], day),
            valid_on(seeds["allocation_policies"], day),
            {row["pool_id"]: row["owner_team_id"] for row in valid_on(seeds["pools"], day)},
            entitled_units(seeds, day),
            reserved_by_team(usage),
            weights,
        )

    def parts(self, pool_id: str, component: str, cause: str, amounts: dict[int, int]) -> Parts:
        """Who pays the day's cost of a cause, given per hour."""
        row = most_specific(self.idle_policies, pool_id=pool_id, idle_cause=cause)
        policy, by_hour = (row["policy"], row["idle_window"] == "hour") if row else ("proportional", False)
        hours = self.weights.get((pool_id, component), {})
        if policy == "proportional":
            of_day = sum_weights(hours)
            if not by_hour:
                return divide(sum(amounts.values()), of_day)
            return hour_by_hour(amounts, {hour: total.jobs or of_day for hour, total in hours.items()}, of_day)
        if policy == "owner" and cause == "reserved":
            reserving = {hour: self.reserving(pool_id, component, hour) for hour in amounts}
            return hour_by_hour(amounts, reserving, {})
        whole = sum(amounts.values())
        peaks = team_peaks(hours)
        if policy == "peak" and peaks:
            return airport(whole, peaks)
        if policy == "even":
            return divide(whole, dict.fromkeys(peaks, 1))
        if policy == "entitlement":
            return divide(whole, {team_payer(team): units for team, units in self.entitled.get(pool_id, {}).items()})
        if policy == "owner" and self.owners.get(pool_id):
            return {team_payer(self.owners[pool_id]): whole}
        return {PLATFORM: whole}

    def reserving(self, pool_id: str, component: str, hour: int) -> dict[Payer, int]:
        """The reserving teams by what they kept idle; energy follows the GPUs, or the cores where none were kept."""
        times = self.reserved.get((pool_id, hour), {})
        if component != "energy":
            return times.get(component, {})
        gpus = times.get("gpu", {})
        return gpus if any(gpus.values()) else times.get("cpu", {})


def sum_weights(hours: dict[int, Weights]) -> dict[Payer, int]:
    of_day: dict[Payer, int] = defaultdict(int)
    for total in hours.values():
        for payer, weight in total.jobs.items():
            of_day[payer] += weight
    return of_day


def team_peaks(hours: dict[int, Weights]) -> dict[Payer, int]:
    """Each team's highest hour of the day, in what it held."""
    peaks: dict[Payer, int] = {}
    for total in hours.values():
        for payer, held in by_team(total.held).items():
            if held > peaks.get(payer, 0):
                peaks[payer] = held
    return peaks


def by_team(parts: Mapping[Payer, int]) -> dict[Payer, int]:
    teams: dict[Payer, int] = defaultdict(int)
    for payer, amount in parts.items():
        teams[team_payer(payer[0])] += amount
    return teams


def hour_by_hour(
    amounts: dict[int, int], weights: Mapping[int, dict[Payer, int]], otherwise: dict[Payer, int]
) -> Parts:
    parts: Parts = defaultdict(int)
    for hour, amount in amounts.items():
        for payer, part in divide(amount, weights.get(hour, otherwise)).items():
            parts[payer] += part
    return parts


# --- the day -----------------------------------------------------------------------------------------------


def allocate_idle(ledger: Ledger, pool_hours: dict[PoolHourKey, list[int]], rules: IdleRules) -> None:
    by_group: dict[Group, dict[int, list[int]]] = defaultdict(dict)
    for key, amounts in pool_hours.items():
        by_group[key.group][key.hour] = amounts
    for group, hours in by_group.items():
        pool_id, component, _ = group
        rows: dict[tuple[str, Payer], int] = {}
        for index, cause in enumerate(CAUSES, start=2):  # after the cost of the hour and its used part
            amounts = {hour: sides[index] for hour, sides in hours.items()}
            for payer, part in rules.parts(pool_id, component, cause, amounts).items():
                rows[cause, payer] = part
        ceiling = allocation_policy(rules.allocation_policies, pool_id, component)["idle_ceiling"]
        if ceiling is not None:
            rows = capped(rows, sum(cost for cost, *_ in hours.values()), nano(ceiling))
        for (cause, payer), part in rows.items():
            book(ledger, group, {payer: part}, "idle", cause)


def capped(rows: dict[tuple[str, Payer], int], cost: int, ceiling: int) -> dict[tuple[str, Payer], int]:
    """Teams pay at most a share (in nano-units) of the day's cost as idle; the platform takes the rest, per cause."""
    of_teams = sorted((row for row in rows if row[1][0] != PLATFORM[0]), key=lambda row: (row[0], absent_first(row[1])))
    charged = sum(rows[row] for row in of_teams)
    if charged <= 0 or cost <= 0 or charged * 10**9 <= ceiling * cost:
        return rows
    result = dict(rows)
    parts = split(round_half_away(ceiling * cost, 10**9), [rows[row] for row in of_teams])
    for row, part in zip(of_teams, parts, strict=True):
        result[row] = part
        result[row[0], PLATFORM] = result.get((row[0], PLATFORM), 0) + rows[row] - part
    return result
