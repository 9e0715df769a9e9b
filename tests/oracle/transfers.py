"""ALLOCATION §5: burst pricing, lender credit and outcome credit. Each books pairs that sum to zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from .exact import HOUR, Interval, Row, most_specific, nano, overlap, round_half_away, scaled, united, valid_on
from .idle import by_team, entitled_units
from .ledger import PLATFORM, HourlyParts, Ledger, Parts, PoolHourKey, book, divide, team_payer
from .usage import Payer, Usage, first_parts, open_interval
from .weights import PoolWeights, allocation_policy

BASE = ("reserved", "owned")
BURST = ("on_demand", "spot")
MINUTE = 60_000


def gpu_policies(seeds: dict[str, list[Row]], day: date) -> dict[str, tuple[Row, Row]]:
    """Every pool of the day with the policy of its GPUs."""
    policies = valid_on(seeds["allocation_policies"], day)
    pools = valid_on(seeds["pools"], day)
    return {pool["pool_id"]: (pool, allocation_policy(policies, pool["pool_id"], "gpu")) for pool in pools}


# --- 1. burst ----------------------------------------------------------------------------------------------


@dataclass
class BurstGroup:
    """Pools of one cluster and GPU model whose rented capacity is paid first by use above entitlement."""

    base: list[str]
    burst: list[str]

    def side_weights(
        self, held: dict[str, dict[Payer, int]], entitled: dict[str, dict[str, int]]
    ) -> tuple[dict[Payer, int], dict[Payer, int]]:
        """Per team the weight in base pools and in burst pools, from the GPU time it held in each pool."""
        use: dict[Payer, int] = defaultdict(int)
        for pool_id in (*self.base, *self.burst):
            for team, quantity in held[pool_id].items():
                use[team] += quantity
        over, within = {}, {}
        for team, quantity in use.items():
            units = sum(entitled.get(pool_id, {}).get(team[0], 0) for pool_id in self.base)
            over[team] = max(0, quantity - units * HOUR)
            within[team] = quantity - over[team]
        rented = sum(sum(held[pool_id].values()) for pool_id in self.burst)
        all_over, all_within = sum(over.values()), sum(within.values())
        paid_by_over = min(rented, all_over)
        in_burst = {
            team: fraction_of(over[team], paid_by_over, all_over)
            + fraction_of(within[team], rented - paid_by_over, all_within)
            for team in use
        }
        return {team: use[team] - in_burst[team] for team in use}, in_burst


def fraction_of(quantity: int, numerator: int, denominator: int) -> int:
    """quantity × numerator ÷ denominator. At most one of the two terms of a burst weight is not whole, so each may
    be rounded alone."""
    return round_half_away(quantity * numerator, denominator) if denominator else 0


def burst_groups(seeds: dict[str, list[Row]], day: date) -> list[BurstGroup]:
    groups: dict[tuple[str, str], BurstGroup] = defaultdict(lambda: BurstGroup([], []))
    for pool_id, (pool, policy) in gpu_policies(seeds, day).items():
        known = pool["pool_kind"] == "compute" and pool["cluster_id"] and pool["gpu_model"]
        if known and policy["burst_policy"] == "marginal":
            group = groups[pool["cluster_id"], pool["gpu_model"]]
            if pool["purchase_class"] in BASE:
                group.base.append(pool_id)
            elif pool["purchase_class"] in BURST:
                group.burst.append(pool_id)
    return list(groups.values())


def book_burst(
    ledger: Ledger, seeds: dict[str, list[Row]], day: date, direct: HourlyParts, weights: PoolWeights
) -> HourlyParts:
    """Price each pool-hour's used GPU cost anew and book the difference; returns it by pool-hour and payer."""
    entitled = entitled_units(seeds, day)
    moved: HourlyParts = {}
    for group in burst_groups(seeds, day):
        pools = (*group.base, *group.burst)
        for hour in sorted({hour for pool_id in pools for hour in weights.get((pool_id, "gpu"), {})}):
            held = {pool_id: gpu_time_by_team(weights, pool_id, hour) for pool_id in pools}
            base_weights, burst_weights = group.side_weights(held, entitled)
            for key, charged in direct.items():
                if key.pool_id in pools and key.component == "gpu" and key.hour == hour:
                    side = base_weights if key.pool_id in group.base else burst_weights
                    moved[key] = carried_to_jobs(charged, side, weights[key.pool_id, "gpu"][hour].jobs)
                    book(ledger, key.group, moved[key], "burst")
    return moved


def gpu_time_by_team(weights: PoolWeights, pool_id: str, hour: int) -> dict[Payer, int]:
    hours = weights.get((pool_id, "gpu"), {})
    return {team: held for team, held in by_team(hours[hour].held).items() if held} if hour in hours else {}


def carried_to_jobs(charged: Parts, side: dict[Payer, int], jobs: dict[Payer, int]) -> Parts:
    """What each team pays by its side's weight instead of what its jobs were charged, spread over those jobs."""
    if not any(side.values()):
        return {}
    already = by_team(charged)
    parts: Parts = {}
    for team, amount in divide(sum(charged.values()), side).items():
        own = {payer: weight for payer, weight in jobs.items() if payer[0] == team[0]}
        parts |= divide(amount - already.get(team, 0), own, fallback=team)
    return parts


# --- 2. lender credit --------------------------------------------------------------------------------------


def book_lender_credit(
    ledger: Ledger,
    seeds: dict[str, list[Row]],
    day: date,
    pool_hours: dict[PoolHourKey, list[int]],
    weights: PoolWeights,
    usage: Usage,
) -> None:
    """In a base pool-hour borrowers pay lenders a premium for the entitled capacity that they used."""
    policies, entitled = gpu_policies(seeds, day), entitled_units(seeds, day)
    capacity: dict[tuple[str, int], int] = defaultdict(int)
    for (_, _, pool_id, hour), node_hour in usage.node_hours.items():
        capacity[pool_id, hour] += node_hour.capacity("gpu")
    for key, (cost, *_) in pool_hours.items():
        pool, policy = policies.get(key.pool_id, ({}, {}))
        share = nano(policy.get("lender_share")) or 0
        size = capacity.get((key.pool_id, key.hour), 0)
        if key.component != "gpu" or pool.get("purchase_class") not in BASE or share == 0 or size == 0:
            continue
        held = gpu_time_by_team(weights, key.pool_id, key.hour)
        owed = {team_payer(team): units * HOUR for team, units in entitled.get(key.pool_id, {}).items()}
        lent = {team: max(0, units - held.get(team, 0)) for team, units in owed.items()}
        over = {team: max(0, quantity - owed.get(team, 0)) for team, quantity in held.items()}
        borrowed = min(sum(lent.values()), sum(over.values()))
        if borrowed:
            premium = round_half_away(cost * borrowed * share, size * 10**9)
            book(ledger, key.group, divide(premium, over), "burst")
            book(ledger, key.group, divide(-premium, lent), "burst")


# --- 3. outcome credit -------------------------------------------------------------------------------------


@dataclass
class Life:
    """A job from its first part's start to its last part's end, and how it ended (None while it runs)."""

    interval: Interval
    state: str | None
    checkpoint_interval: int


def lives(jobs: Iterable[Row], day: date) -> dict[str, Life]:
    parts: dict[str, list[Row]] = defaultdict(list)
    for job in jobs:
        parts[job["job_key"]].append(job)
    first = first_parts(row for rows in parts.values() for row in rows)
    found = {}
    for job_key, rows in parts.items():
        intervals = [open_interval(row, "start_at", "end_at", day) for row in rows]
        state = None
        if all(row["end_at"] is not None for row in rows):
            state = max(rows, key=lambda row: (row["end_at"], row["part_id"]))["state"]
        found[job_key] = Life(
            (min(start for start, _ in intervals), max(end for _, end in intervals)),
            state.upper() if state else None,
            first[job_key]["checkpoint_interval_ms"] or 0,
        )
    return found


def lost_window(life: Life, policy: Row) -> Interval:
    """The last stretch before the end: since the last checkpoint, and no longer than the policy pays for."""
    start, end = life.interval
    own, usual = life.checkpoint_interval, scaled(policy["checkpoint_minutes"], MINUTE)
    # A job may say that it saves more often than the policy expects, but not less often.
    interval = min(own, usual) if own > 0 and usual > 0 else max(own, usual)
    lost = (end - start) % interval if interval > 0 else end - start
    if policy["max_lost_minutes"] is not None:
        lost = min(lost, scaled(policy["max_lost_minutes"], MINUTE))
    return end - lost, end


def book_outcome_credit(
    ledger: Ledger,
    tables: dict[str, list[Row]],
    seeds: dict[str, list[Row]],
    day: date,
    usage: Usage,
    classes: dict[str, str],
    direct: HourlyParts,
    burst: HourlyParts,
) -> None:
    """The platform pays for the work that was lost when a run ended as the policy names it."""
    policies = valid_on(seeds["outcome_policies"], day)
    windows: dict[str, Interval] = {}
    for job_key, life in lives(tables["jobs"], day).items():
        if life.state is not None:
            policy = most_specific(policies, state=life.state, workload_class=classes[job_key])
            if policy and policy["paid_by"] == "platform":
                windows[job_key] = lost_window(life, policy)
    for key in direct.keys() | burst.keys():
        for payer in direct.get(key, {}).keys() | burst.get(key, {}).keys():
            if payer[3] in windows:
                cost = direct.get(key, {}).get(payer, 0) + burst.get(key, {}).get(payer, 0)
                stretches = united(usage.present[key.pool_id, key.hour, payer[3]])
                lost = sum(overlap(windows[payer[3]], stretch) for stretch in stretches)
                moved = round_half_away(cost * lost, sum(end - start for start, end in stretches))
                book(ledger, key.group, {payer: -moved}, "outcome_credit")
                book(ledger, key.group, {PLATFORM: moved}, "outcome_credit")
