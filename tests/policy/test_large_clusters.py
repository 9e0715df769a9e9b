"""No product overflows at 8,000 GPUs: the models' own SQL on a day of such a cluster, against Python's integers.

Everything at its largest at once: a full day, a complexity weight of 100, full intensity (which multiplies by a
million) and a day that costs five million, to the last decimal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate, pairwise
from random import Random

import pytest

from orchestration.workspace import Workspace
from tests.compiled import Row, answer, compiled
from tests.warehouses import GOLDEN

GPUS, NODES = 8_000, 1_000
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
LARGEST_WEIGHT = 100_000
"""A complexity weight of 100.000 in thousandths."""
FULL_INTENSITY = 1_000_000
COST = Decimal("4999999.876543211")
NANO = 10**9
PEOPLE = 7

HELD = {
    "gpu": GPUS * 25_200,
    "cpu": NODES * 192 * 1_000,
    "memory": NODES * 2_048 * 1_024,
    # Microjoules in a millisecond are watts times a thousand: 1,200 W for each GPU.
    "energy": GPUS * 1_200 * 1_000,
}
"""What is held of each component at any moment, in its smallest unit."""
DRIVERS = {"gpu": "gpu_seconds", "cpu": "cpu_core_seconds", "memory": "memory_gib_seconds", "energy": "kwh"}
MODELS = (
    "int_described_hours",
    "int_weighed_hours",
    "int_job_pool_hour_costs",
    "int_job_pool_days",
    "int_idle_weights",
    "int_idle_by_rule",
    "int_job_idle_parts",
    "int_burst_hours",
    "int_lender_credits",
)

DAY = {"usage_date": GOLDEN.start}
SLOT = {**DAY, "hour_ms": 0, "pool_id": "large"}


@pytest.fixture(scope="module")
def models(golden: Workspace) -> dict[str, str]:
    return compiled(golden, MODELS, GOLDEN)


def parts_of(whole: int, random: Random) -> list[int]:
    """Uneven parts of a whole."""
    cuts = sorted(random.randint(0, whole) for _ in range(PEOPLE - 1))
    return [end - start for start, end in pairwise([0, *cuts, whole])]


def split(amount: Decimal, weights: Sequence[int]) -> list[Decimal]:
    """Differences of rounded running shares, in integers without an end."""
    whole, total = int(abs(amount) * NANO), sum(weights)
    running = accumulate(weights, initial=0)
    shares = [(2 * whole * part + total) // (2 * total) for part in running]
    return [Decimal(end - start) / NANO * (-1 if amount < 0 else 1) for start, end in pairwise(shares)]


def weighings(component: str) -> dict[str, list[int]]:
    """Several pools with a day of the component in each, held by jobs under the largest weights."""
    total = HELD[component] * DAY_MS * LARGEST_WEIGHT * FULL_INTENSITY
    return {f"pool{seed:02}": parts_of(total, Random(seed)) for seed in range(40)}


def jobs(pools: Mapping[str, Sequence[int]], component: str) -> list[Row]:
    """Jobs that hold one unit of the component each, in every pool, with these weights."""
    one = {**SLOT, quantity_of(component): 1}
    return [
        {**one, "pool_id": pool, "job_number": number, f"{component}_weight": weight}
        for pool, weights in pools.items()
        for number, weight in enumerate(weights)
    ]


def quantity_of(component: str) -> str:
    return "energy" if component == "energy" else f"{component}_held"


def amounts(rows: Sequence[Row], column: str) -> dict[str, list[Decimal]]:
    """By pool, in order of jobs."""
    found: dict[str, list[Decimal]] = {}
    for row in sorted(rows, key=lambda row: (row["pool_id"], row["job_number"])):
        found.setdefault(row["pool_id"], []).append(row[column])
    return found


@pytest.mark.parametrize("component", HELD)
def test_weights_of_a_job_on_all_of_it(models: dict[str, str], golden: Workspace, component: str) -> None:
    """One job on 8,000 GPUs for an hour, as busy as can be, in the class that weighs most."""
    held = {name: amount * HOUR_MS for name, amount in HELD.items()}
    place = {**SLOT, "cluster_id": "c", "node_name": "n"}
    sampled = GPUS * HOUR_MS
    policies = [
        {**DAY, "pool_id": "large", "component": component, "method": "complexity", "intensity_metric": "sm"}
        | {"intensity_floor_thousandths": 300, "intensity_min_coverage_thousandths": 500}
    ]
    hours = answer(
        models["int_described_hours"],
        {
            "int_job_hours": [
                {**place, "job_number": 1, "held_ms": HOUR_MS, "gpu_device_ms": sampled, "named_energy": held["energy"]}
                | {"sm_sampled_ms": sampled, "sm_millipercent_ms": sampled * 100_000}
                | {f"{name}_held": held[name] for name in ("gpu", "cpu", "memory")}
            ],
            "int_job_payers": [{**DAY, "job_number": 1, "workload_class": "pretraining"}],
            "int_job_classes": [{**DAY, "workload_class": "pretraining"}],
            "int_node_energy": [{**place, "unnamed_energy": 0}],
            "int_energy_rates": [{**DAY, "pool_id": "large", "is_measured": True}],
            "stg_policy__complexity_weights": [
                {"workload_class": "*", "gpu_model": "*", "weight_thousandths": LARGEST_WEIGHT}
                | {"valid_from": "2026-01-01", "valid_to": "9999-12-31"}
            ],
            "int_pool_days": [{**DAY, "pool_id": "large", "gpu_model": "h100"}],
            "int_allocation_policies": policies,
        },
        golden.warehouse,
    )
    (row,) = answer(
        models["int_weighed_hours"],
        {"int_described_hours": hours, "int_allocation_policies": policies},
        golden.warehouse,
    )
    assert row[f"{component}_weight"] == held[component] * LARGEST_WEIGHT * FULL_INTENSITY


@pytest.mark.parametrize("component", HELD)
def test_direct_cost_of_a_day(models: dict[str, str], golden: Workspace, component: str) -> None:
    """Hours are split, so a day at once is more than there can be."""
    pools = weighings(component)
    cost = {**SLOT, "component": component, "currency": "USD", "used": HELD[component] * DAY_MS, "used_cost": COST}
    rows = answer(
        models["int_job_pool_hour_costs"],
        {
            "int_pool_hour_costs": [{**cost, "pool_id": pool} for pool in pools],
            "int_job_pool_hours": jobs(pools, component),
        },
        golden.warehouse,
    )
    found = amounts(rows, f"{component}_cost")
    assert found == {pool: split(COST, weights) for pool, weights in pools.items()}


@pytest.mark.parametrize("component", HELD)
def test_idle_cost_of_a_day(models: dict[str, str], golden: Workspace, component: str) -> None:
    pools = weighings(component)
    is_by_use = component != "energy"
    rule = {**DAY, "component": component, "idle_rule": "proportional by day", "is_paid_by_use_of_day": is_by_use}
    cost = {**rule, "hour_ms": 0, "currency": "USD", "idle_cause": "down", "idle_cost": COST, "is_paid_by_hour": False}
    costs = [{**cost, "pool_id": pool, "driver": DRIVERS[component]} for pool in pools]
    days = answer(models["int_job_pool_days"], {"int_job_pool_hours": jobs(pools, component)}, golden.warehouse)
    tables = {"int_idle_costs": costs, "int_job_pool_days": days}
    weights = answer(models["int_idle_weights"], tables, golden.warehouse)
    by_rule = answer(models["int_idle_by_rule"], {**tables, "int_idle_weights": weights}, golden.warehouse)
    side_by_side = answer(models["int_job_idle_parts"], tables, golden.warehouse)
    found = amounts(side_by_side, f"{component}_cost") if is_by_use else amounts(by_rule, "amount")
    assert found == {pool: split(COST, weights) for pool, weights in pools.items()}
    assert bool(by_rule) is not is_by_use


TOTALS = [PEOPLE, 16, 10**9, 10**18 - 1, 10**18, 10**18 + 1, 10**24 + 7, 5 * 10**31]
"""Around the total from which on amounts are divided in parts, and far beyond any cluster."""
AMOUNTS_AROUND = ("999999.999999999", "-999999.999999997", "1000000", "-1000000.000000001")
"""Below a million shares are guessed and proved, from there on they are divided."""


def test_splits_of_all_sizes(models: dict[str, str], golden: Workspace) -> None:
    random = Random(8_000)
    pools = {
        f"{total} {amount}": (Decimal(amount), parts_of(total, random))
        for total in TOTALS
        for amount in ("0.000000001", "-0.000000005", "0.1", "-123456.789012345", *AMOUNTS_AROUND, "99999999.999999999")
    }
    cost = {**SLOT, "component": "gpu", "currency": "USD", "used": 1}
    rows = answer(
        models["int_job_pool_hour_costs"],
        {
            "int_pool_hour_costs": [{**cost, "pool_id": pool, "used_cost": pools[pool][0]} for pool in pools],
            "int_job_pool_hours": jobs({pool: weights for pool, (_, weights) in pools.items()}, "gpu"),
        },
        golden.warehouse,
    )
    assert amounts(rows, "gpu_cost") == {pool: split(amount, weights) for pool, (amount, weights) in pools.items()}


# --- transfers ---------------------------------------------------------------------------------------------

POOLS = [
    {**DAY, "pool_id": pool, "pool_kind": "compute", "cluster_id": "c", "gpu_model": "h100", "purchase_class": bought}
    for pool, bought in (("base", "reserved"), ("burst", "spot"))
]
POLICIES = [
    {**DAY, "pool_id": pool, "component": "gpu", "burst_policy": "marginal", "lender_share": Decimal("0.999999999")}
    for pool in ("base", "burst")
]


def entitlements(gpus: dict[str, int]) -> list[Row]:
    ever = {"valid_from": "2026-01-01", "valid_to": "9999-12-31"}
    return [{"pool_id": "base", "team_id": team, "gpu_units": count * 25_200, **ever} for team, count in gpus.items()]


def use(pool: str, team: str, held: int) -> Row:
    return {**SLOT, "pool_id": pool, "driver": "gpu_seconds", "team_id": team, "job_key": team, "quantity": held}


def half_up(numerator: int, denominator: int) -> int:
    return (2 * numerator + denominator) // (2 * denominator) if denominator else 0


def test_burst_of_8000_gpus(models: dict[str, str], golden: Workspace) -> None:
    """Three teams on 5,000 reserved and 3,000 spot GPUs, in amounts without common factors."""
    unit = 25_200 * HOUR_MS
    entitled = {"a": 2_001, "b": 2_503, "c": 1_496}
    held = {
        "base": {"a": 3_001 * unit - 7, "b": 1_999 * unit + 11},
        "burst": {"b": 1_303 * unit + 1, "c": 1_697 * unit - 5},
    }
    charged = {pool: dict(zip(teams, split(COST, list(teams.values())), strict=True)) for pool, teams in held.items()}
    rows = answer(
        models["int_burst_hours"],
        {
            "int_pool_days": POOLS,
            "int_allocation_policies": POLICIES,
            "stg_policy__entitlements": entitlements(entitled),
            "int_drivers": [use(pool, team, n) for pool, teams in held.items() for team, n in teams.items()],
            "int_job_hour_costs": [
                {**SLOT, "pool_id": pool, "component": "gpu", "currency": "USD", "team_id": team, "job_key": team}
                | {"gpu_weight": n * LARGEST_WEIGHT * FULL_INTENSITY, "amount": charged[pool][team]}
                for pool, teams in held.items()
                for team, n in teams.items()
            ],
        },
        golden.warehouse,
    )

    used = {team: sum(teams.get(team, 0) for teams in held.values()) for team in entitled}
    over = {team: max(0, used[team] - entitled[team] * unit) for team in entitled}
    burst, all_over = sum(held["burst"].values()), sum(over.values())
    first = min(burst, all_over)
    within = {team: used[team] - over[team] for team in entitled}
    weights = {
        team: half_up(over[team] * first, all_over) + half_up(within[team] * (burst - first), sum(within.values()))
        for team in entitled
    }
    assert 0 < first < burst, "both terms count"
    expected = {}
    for pool in held:
        side = [weights[team] if pool == "burst" else used[team] - weights[team] for team in entitled]
        for team, due in zip(entitled, split(COST, side), strict=True):
            expected[pool, team] = due - charged[pool].get(team, 0)
    assert {(row["pool_id"], row["team_id"]): row["amount"] for row in rows} == expected


def test_lending_of_8000_gpus(models: dict[str, str], golden: Workspace) -> None:
    unit = 25_200 * HOUR_MS
    rows = answer(
        models["int_lender_credits"],
        {
            "int_pool_days": POOLS,
            "int_allocation_policies": POLICIES,
            "stg_policy__entitlements": entitlements({"a": 7_999, "b": 1}),
            "int_drivers": [use("base", "b", 7_999 * unit + 13)],
            "int_pool_hour_costs": [
                {**SLOT, "pool_id": "base", "component": "gpu", "currency": "USD", "cost": COST}
                | {"used": 7_999 * unit + 13, "unscheduled": unit - 13, "down": 0, "reserved": 0, "stranded": 0}
            ],
        },
        golden.warehouse,
    )
    lent = 7_998 * unit + 13
    premium = Decimal(half_up(int(COST * NANO) * lent * 999_999_999, GPUS * unit * NANO)) / NANO
    assert {row["team_id"]: row["amount"] for row in rows} == {"a": -premium, "b": premium}
