"""The policy engine in numbers that a reader can check by hand: GPU-hours at 10 each unless said otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import factorial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .exact import nano
from .example import POOL, Example, company, gpu_shop, gpus, moving_company
from .idle import airport
from .ledger import team_payer
from .oracle import calculate
from .summaries import books_of, by, team_totals
from .workloads import is_of
from .worlds import landed


def rounded(*amounts: str) -> list[Decimal]:
    return [Decimal(amount) for amount in amounts]


# --- prices ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("preset", "percent"), [("aws", "24.5"), ("opencost", "38.0"), ("datadog", "83.8")])
def test_whose_node_it_is_depends_on_the_price_preset(preset: str, percent: str) -> None:
    """Eight GPUs, 192 cores and 2,048 GiB, all taken; one tenant has seven of the GPUs but few cores.

    AWS: (7×9 + 24×0.9 + 256×0.1) ÷ (8×9 + 192×0.9 + 2048×0.1) = 110.2 ÷ 449.6. Datadog: 95×7/8 + 3/8 + 2/8 = 83.75.
    """
    example = company()
    example.policy("instance_types", instance_type="p5", gpus=8, cores=192, memory_gib=2048, price_preset=preset)
    size = {"gpu_units": gpus(8), "cpu_millicores": 192_000, "memory_mib": 2048 * 1024}
    example.node("n1", 0, 1, instance_type="p5", **size)
    example.charge("n1", "compute", "100", 0, 1, resource_id="i-n1")
    example.job("a", "vision", "n1", (7, 24, 256), 0, 1)
    example.job("b", "nlp", "n1", (1, 168, 1792), 0, 1)
    assert team_totals(books_of(example.done()))["vision"].quantize(Decimal("0.1")) == Decimal(percent)


# --- methods -----------------------------------------------------------------------------------------------


def test_time_counts_presence_once_however_many_nodes() -> None:
    """a is on two nodes for 30 and 45 minutes that overlap: present for 45. b is there for 15."""
    example = gpu_shop(method="time")
    example.node("n2", 0, 1)
    example.job("a", "vision", "n1", (1, 1, 1), 0, 0.5)
    example.job("a", "vision", "n2", (4, 1, 1), 0, 0.75, part_id="a2")
    example.job("b", "nlp", "n1", (8, 1, 1), 0.5, 0.75)
    paid = team_totals(books_of(example.done()))
    # Held: 0.5 + 3 + 2 of 16 GPU-hours, so 27.50 of the 80 are used.
    assert (paid["vision"], paid["nlp"]) == (Decimal("20.625"), Decimal("6.875"))


def test_complexity_looks_for_the_class_before_the_model() -> None:
    example = gpu_shop(method="complexity")
    example.policy("workload_rules", rule_order=1, job_name="train%", workload_class="training")
    for workload_class, model, weight in (("training", "*", "3"), ("*", "H100", "7"), ("training", "L4", "9")):
        key = {"workload_class": workload_class, "gpu_model": model}
        example.policy("complexity_weights", **key, weight=Decimal(weight))
    example.job("a", "vision", "n1", (4, 1, 1), 0, 1, job_name="train-1")
    example.job("b", "nlp", "n1", (4, 1, 1), 0, 1, job_name="other")
    # The node names no model, so the pool's counts: 3 against 7.
    assert team_totals(books_of(example.done())) == {"vision": 24, "nlp": 56}


@pytest.mark.parametrize(("sampled", "vision"), [(4, "30"), (2, "30"), (1, "40")])
def test_intensity_counts_where_enough_was_sampled(sampled: int, vision: str) -> None:
    """Half busy with a floor of 0.2 weighs 0.2 + 0.8 × 0.5 = 0.6: 80 × 0.6 ÷ 1.6 = 30. One GPU of four is too few."""
    intensity = {"intensity_metric": "sm", "intensity_floor": Decimal("0.2")}
    example = gpu_shop(method="complexity", **intensity)
    example.job("a", "vision", "n1", (4, 1, 1), 0, 1)
    example.job("b", "nlp", "n1", (4, 1, 1), 0, 1)
    for gpu in range(sampled):
        _sample(example, gpu, "a", 0.5)
    _sample(example, 6, "a", 1.5)
    _sample(example, 7, "stranger", 0.0)
    assert team_totals(books_of(example.done())) == {"vision": Decimal(vision), "nlp": 80 - Decimal(vision)}


def test_work_that_weighs_nothing_pays_by_what_it_holds() -> None:
    example = gpu_shop(method="complexity", intensity_metric="tensor")
    for key, team, held, gpu in (("a", "vision", 2, 0), ("b", "nlp", 6, 7)):
        example.job(key, team, "n1", (held, 1, 1), 0, 1)
        for index in range(held):
            _sample(example, gpu + index, key, 0.0)
    assert team_totals(books_of(example.done())) == {"vision": 20, "nlp": 60}


def _sample(example: Example, gpu: int, part: str, activity: float) -> None:
    place = {"cluster_id": "c", "node_name": "n1", "gpu_index": gpu, "part_id": part, "sampled_at": example.at(0)}
    example.add("gpu_samples", **place, interval_ms=3_600_000, sm_active=activity, tensor_active=activity)


def test_a_workload_rule_reads_the_first_part() -> None:
    rule = dict.fromkeys(("cluster_id", "partition", "qos", "job_name", "label", "min_hours", "max_hours"))
    rule |= {"min_gpus": Decimal("0.5"), "max_gpus": Decimal(2)}
    job = dict.fromkeys(("cluster_id", "partition", "qos", "job_name", "labels", "gpu_units", "time_limit_ms"))
    sizes = {units: is_of(job | {"gpu_units": units}, rule) for units in (None, 12_599, 12_600, 50_399, 50_400)}
    assert sizes == {None: False, 12_599: False, 12_600: True, 50_399: True, 50_400: False}
    short = {**dict.fromkeys(rule), "max_hours": Decimal(1)}
    limits = {limit: is_of(job | {"time_limit_ms": limit}, short) for limit in (None, 0, 3_599_999, 3_600_000)}
    assert limits == {None: False, 0: True, 3_599_999: True, 3_600_000: False}
    assert not is_of(job, {**dict.fromkeys(rule), "qos": "%"})


# --- the airport game --------------------------------------------------------------------------------------


def test_the_airport_game_of_the_textbook() -> None:
    demands = {team_payer(team): demand for team, demand in (("a", 2), ("b", 5), ("c", 10))}
    parts = airport(nano(Decimal(100)), demands)
    assert list(parts.values()) == [nano(part) for part in rounded("6.666666667", "21.666666666", "71.666666667")]


def shapley(demands: list[int]) -> list[Fraction]:
    """By the definition: the mean over all orders of what a player adds to the highest demand so far."""
    players = range(len(demands))
    values = []
    for player in players:
        others = [other for other in players if other != player]
        value = Fraction(0)
        for size in range(len(others) + 1):
            orders = Fraction(factorial(size) * factorial(len(others) - size), factorial(len(demands)))
            for before in combinations(others, size):
                top = max((demands[other] for other in before), default=0)
                value += orders * (max(top, demands[player]) - top)
        values.append(value)
    return values


def closed_form(demands: list[int]) -> list[Fraction]:
    """Each step between sorted demands, shared by those who reach it."""
    steps = sorted(set(demands))
    share, reached = Fraction(0), {}
    for lower, upper in zip([0, *steps], steps, strict=False):
        share += Fraction(upper - lower, sum(demand >= upper for demand in demands))
        reached[upper] = share
    return [reached[demand] for demand in demands]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=7), st.integers(-(10**15), 10**15))
def test_the_airport_split_is_the_shapley_value(demands: list[int], amount: int) -> None:
    ideal = shapley(demands)
    assert closed_form(demands) == ideal
    assert sum(ideal) == max(demands)
    parts = airport(amount, {team_payer(f"t{number}"): demand for number, demand in enumerate(demands)})
    assert sum(parts.values()) == amount
    for number, value in enumerate(ideal):
        assert abs(parts[team_payer(f"t{number}")] - amount * value / max(demands)) <= len(demands)


# --- idle --------------------------------------------------------------------------------------------------


def test_teams_that_reserve_one_node_share_it_by_their_time() -> None:
    """vision reserves 00:00–00:30, nlp 00:15–01:00 and again 00:30–00:45: the hour by 30 : 45."""
    example = gpu_shop(idle="owner")
    for name, account, start, end in (("r1", "vision", 0, 0.5), ("r2", "nlp", 0.25, 1), ("r3", "nlp", 0.5, 0.75)):
        times = {"start_at": example.at(start), "end_at": example.at(end)}
        hold = {"cluster_id": "c", "reservation_name": name, "node_names": "n1", "accounts": account}
        example.add("reservations", **hold, **times)
    assert by(books_of(example.done()), "team_id", "idle_cause") == {
        ("vision", "reserved"): 32,
        ("nlp", "reserved"): 48,
    }


def test_the_owner_of_a_pool_pays_for_what_nobody_reserved() -> None:
    example = gpu_shop(idle="owner")
    example.world.seeds["pools"][0]["owner_team_id"] = "speech"
    example.job("a", "vision", "n1", (2, 1, 1), 0, 1)
    assert team_totals(books_of(example.done())) == {"vision": 20, "speech": 60}


def test_above_the_ceiling_idle_is_the_platforms() -> None:
    """40 idle, by use 10 : 30; at most a quarter of the 80 is charged on, so 5 : 15 and 20 for the platform."""
    example = gpu_shop(idle="proportional", idle_ceiling=Decimal("0.25"))
    example.job("a", "vision", "n1", (1, 1, 1), 0, 1)
    example.job("b", "nlp", "n1", (3, 1, 1), 0, 1)
    paid = by(books_of(example.done()), "team_id", "allocation_kind")
    assert [paid["vision", "idle"], paid["nlp", "idle"], paid["platform", "idle"]] == [5, 15, 20]


# --- burst -------------------------------------------------------------------------------------------------


def burst_hour(held: dict[str, tuple[int, int]], entitled: dict[str, int]) -> Example:
    """Four reserved GPUs at 10 and four rented ones at 30 an hour, of which each team holds so many."""
    example = company(cluster_id="c", gpu_model="H100", purchase_class="reserved")
    rented = {"pool_name": "rented", "pool_kind": "compute", "cluster_id": "c", "gpu_model": "H100"}
    example.policy("pools", pool_id="rented", **rented, purchase_class="on_demand")
    example.policy("allocation_policies", pool_id="*", component="gpu", method="direct", burst_policy="marginal")
    example.policy("cost_rules", rule_order=1, service_name="cards", component="gpu")
    for name, pool, cost in (("n1", POOL, "40"), ("n2", "rented", "120")):
        example.node(name, 0, 1, pool=pool, gpu_units=gpus(4))
        example.charge(name, "cards", cost, 0, 1, resource_id=f"i-{name}")
    for team, amounts in held.items():
        for node, amount in zip(("n1", "n2"), amounts, strict=True):
            if amount:
                example.job(f"{team}-{node}", team, node, (amount, 1, 1), 0, 1)
    for team, amount in entitled.items():
        example.policy("entitlements", pool_id=POOL, team_id=team, gpus=Decimal(amount))
    return example


def moved(example: Example) -> dict[tuple, Decimal]:
    return by_kind(example, "burst", "pool_id", "team_id", "job_key")


def by_kind(example: Example, kind: str, *fields: str) -> dict[tuple, Decimal]:
    sums = by(books_of(example.done()), "allocation_kind", *fields)
    return {key[1:]: amount for key, amount in sums.items() if key[0] == kind and amount}


def test_use_above_entitlement_pays_for_the_rented_gpus() -> None:
    """vision holds 3 of its 3, nlp 5 with 1 entitled: 4 above, as many as were rented.

    So nlp's weight is 4 in the rented pool and 1 in the reserved one, vision's 0 and 3: nlp pays 120 + 10, vision 30.
    By what they held it was 20 : 20 of the reserved pool and 30 : 90 of the rented one.
    """
    example = burst_hour({"vision": (2, 1), "nlp": (2, 3)}, {"vision": 3, "nlp": 1})
    assert moved(example) == {
        (POOL, "vision", "c:vision-n1"): 10,
        (POOL, "nlp", "c:nlp-n1"): -10,
        ("rented", "vision", "c:vision-n2"): -30,
        ("rented", "nlp", "c:nlp-n2"): 30,
    }
    assert team_totals(books_of(example.done())) == {"vision": 30, "nlp": 130}


def test_rented_gpus_beyond_all_above_are_shared_by_use_within_entitlement() -> None:
    """nlp is 3 above and 2 within, vision 3 within; the fourth rented GPU is shared 2 : 3.

    Rented: nlp 3.4, vision 0.6 of 120. Reserved: nlp 1.6, vision 2.4 of 40.
    """
    paid = team_totals(books_of(burst_hour({"vision": (2, 1), "nlp": (2, 3)}, {"vision": 3, "nlp": 2}).done()))
    assert paid == {"vision": 18 + 24, "nlp": 102 + 16}


def test_a_team_without_a_job_in_the_pool_gets_a_row_of_its_own() -> None:
    """vision's two GPUs are within its entitlement, though both are rented: it pays for two reserved ones instead."""
    example = burst_hour({"vision": (0, 2), "nlp": (4, 2)}, {"vision": 2, "nlp": 2})
    assert moved(example) == {
        (POOL, "vision", None): 20,
        (POOL, "nlp", "c:nlp-n1"): -20,
        ("rented", "vision", "c:vision-n2"): -60,
        ("rented", "nlp", "c:nlp-n2"): 60,
    }


def test_borrowers_pay_lenders_a_premium() -> None:
    """Of 4 entitled each, nlp holds 6 and vision 1: two GPU-hours are borrowed, at half of 10."""
    example = gpu_shop(lender_share=Decimal("0.5"))
    for team in ("vision", "nlp"):
        example.policy("entitlements", pool_id=POOL, team_id=team, gpus=Decimal(4))
    example.job("a", "vision", "n1", (1, 1, 1), 0, 1)
    example.job("b", "nlp", "n1", (6, 1, 1), 0, 1)
    assert moved(example) == {(POOL, "nlp", None): 10, (POOL, "vision", None): -10}


# --- outcome credit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "own", "credit"),
    [
        ({}, None, "200"),  # nobody knows of a checkpoint: all 2.5 hours are lost
        ({"checkpoint_minutes": 60}, None, "40"),  # 150 mod 60 = 30 minutes
        ({"checkpoint_minutes": 60, "max_lost_minutes": 15}, None, "20"),
        ({}, 6_000_000, "66.666666667"),  # the job's own: 150 mod 100, half an hour and 20 minutes at 80
        ({"checkpoint_minutes": 60}, 2_700_000, "20"),  # it saves more often than expected: 150 mod 45 = 15 minutes
        ({"checkpoint_minutes": 60}, 6_000_000, "40"),  # it may not save less often
        ({"checkpoint_minutes": 75}, None, "0"),  # it failed right after a checkpoint
        ({"workload_class": "search"}, None, "0"),
        ({"state": "FAILED"}, None, "0"),
        ({"paid_by": "team"}, None, "0"),
    ],
)
def test_the_platform_pays_for_work_lost_since_the_last_checkpoint(policy: dict, own: int | None, credit: str) -> None:
    """Eight GPUs from 00:00 until the node fails at 02:30."""
    example = gpu_shop(hours=3)
    row = {"state": "NODE_FAIL", "workload_class": "*", "paid_by": "platform"}
    example.policy("outcome_policies", **(row | policy))
    run = {"state": "Node_Fail", "checkpoint_interval_ms": own}
    example.job("a", "vision", "n1", (8, 1, 1), 0, 2.5, **run)
    moved_to = by_kind(example, "outcome_credit", "team_id", "job_key")
    expected = {("vision", "c:a"): -Decimal(credit), ("platform", None): Decimal(credit)}
    assert moved_to == {key: amount for key, amount in expected.items() if amount}


def test_a_job_that_still_runs_has_no_outcome() -> None:
    example = gpu_shop(hours=3)
    example.policy("outcome_policies", state="*", workload_class="*", paid_by="platform")
    example.job("a", "vision", "n1", (4, 1, 1), 0, 1, state="NODE_FAIL")
    example.job("a", "vision", "n1", (4, 1, 1), 0, 3, part_id="a2", end_at=None, state="RUNNING")
    assert by_kind(example, "outcome_credit", "team_id") == {}


# --- adjustments -------------------------------------------------------------------------------------------


def adjusted(**values: Any) -> dict[tuple, Decimal]:
    """One hour: vision's job a holds 4 GPUs, its child team's b 1, nlp's c 2 and speech's d 1; 80 in all."""
    example = gpu_shop()
    example.policy("teams", team_id="children", parent_team_id="vision")
    example.policy("payer_rules", rule_order=10, account="children", team_id="children")
    example.policy("workload_rules", rule_order=1, qos="research", workload_class="training")
    for key, team, held, qos in (("a", "vision", 4, "x"), ("b", "children", 1, "x"), ("c", "nlp", 2, "research")):
        example.job(key, team, "n1", (held, 1, 1), 0, 1, qos=qos)
    example.job("d", "speech", "n1", (1, 1, 1), 0, 1)
    row = {"adjustment_id": "x", "funded_by": "platform", "approved_by": "the board"}
    example.policy("adjustments", **(row | values))
    return by_kind(example, "adjustment", "team_id", "job_key")


def test_a_percentage_of_a_team_and_all_below_it() -> None:
    relief = {"adjustment_kind": "percent", "value": Decimal(-20), "team_id": "vision"}
    scope = {("vision", "c:a"): -8, ("children", "c:b"): -2}
    assert adjusted(**relief) == scope | {("platform", None): 10}
    assert adjusted(**relief, funded_by="nlp") == scope | {("nlp", None): 10}
    others = {("nlp", None): Decimal("6.666666667"), ("speech", None): Decimal("3.333333333")}
    assert adjusted(**relief, funded_by="all") == scope | others
    assert adjusted(**relief, component="cpu") == adjusted(**relief, currency="EUR") == {}


def test_a_percentage_of_a_workload_class() -> None:
    surcharge = {"adjustment_kind": "percent", "value": Decimal(50), "workload_class": "training"}
    assert adjusted(**surcharge) == {("nlp", "c:c"): 10, ("platform", None): -10}
    assert adjusted(**surcharge, team_id="vision") == {}


def test_a_rate_replaces_the_cost_of_a_gpu_hour() -> None:
    rate = {"adjustment_kind": "rate", "value": Decimal("2.5"), "currency": "USD", "pool_id": POOL}
    assert adjusted(**rate, team_id="vision") == {
        ("vision", "c:a"): 10 - 40,
        ("children", "c:b"): Decimal("2.5") - 10,
        ("platform", None): Decimal("37.5"),
    }
    assert adjusted(**rate, team_id="children", funded_by="all") == {
        ("children", "c:b"): Decimal("-7.5"),
        ("vision", None): Decimal("4.285714286"),  # 7.5 × 40 ÷ 70
        ("nlp", None): Decimal("2.142857143"),
        ("speech", None): Decimal("1.071428571"),
    }


def test_an_amount_is_spread_over_its_days_and_booked_beside_the_pools() -> None:
    """100 over three days: 33.333333333, 33.333333334 and 33.333333333."""
    day = date(2026, 1, 5)
    relief = {"adjustment_kind": "amount", "value": Decimal(-100), "currency": "USD"}
    seen = []
    for first in (day, day - timedelta(days=1), day - timedelta(days=2)):
        validity = {"valid_from": first, "valid_to": first + timedelta(days=3)}
        seen.append(adjusted(**relief, **validity, team_id="vision")["vision", None])
    assert seen == [-amount for amount in rounded("33.333333333", "33.333333334", "33.333333333")]

    once = {"valid_from": day, "valid_to": day + timedelta(days=1)}
    assert adjusted(**relief, **once, workload_class="training", funded_by="all") == {
        ("nlp", None): -100,
        ("vision", None): Decimal("66.666666667"),
        ("children", None): Decimal("16.666666667"),
        ("speech", None): Decimal("16.666666666"),
    }
    assert adjusted(**relief, **once, workload_class="search", funded_by="vision") == {}  # nobody ran any


# --- overhead ----------------------------------------------------------------------------------------------


def overhead(base: str, heads: Iterable[int | None] = (), shares: Iterable[tuple[str, str, str]] = ()) -> dict:
    example = company()
    for team, headcount in zip(example.world.seeds["teams"], heads, strict=False):
        team["headcount"] = headcount
    example.policy("allocation_policies", pool_id="*", component="*", method="direct", overhead_base=base)
    example.policy("cost_rules", rule_order=1, service_name="helpdesk", component="support", pool_id="help")
    for pool, team, share in shares:
        example.policy("overhead_shares", pool_id=pool, team_id=team, share=Decimal(share))
    example.charge("line", "helpdesk", "100", 0, 24)
    return team_totals(books_of(example.done()))


def test_overhead_by_heads() -> None:
    assert overhead("headcount", heads=(3, 0, 1)) == {"vision": 75, "speech": 25}
    assert overhead("headcount", heads=(None, None, None)) == {"platform": 100}


def test_overhead_by_fixed_shares() -> None:
    anywhere = [("*", "vision", "0.7"), ("*", "nlp", "0.3")]
    assert overhead("fixed", shares=anywhere) == {"vision": 70, "nlp": 30}
    assert overhead("fixed", shares=[*anywhere, ("help", "speech", "1")]) == {"speech": 100}
    assert overhead("fixed", shares=[("elsewhere", "speech", "1")]) == {"platform": 100}


# --- people ------------------------------------------------------------------------------------------------


def test_somebody_who_moves_on_the_fifteenth_is_charged_to_both_teams() -> None:
    moves = date(2026, 1, 15)
    world = moving_company(moves - timedelta(days=1))
    for day, team in ((world.day, "vision"), (moves, "nlp")):
        paid = by(calculate(landed(world, day), world.seeds, day), "team_id", "allocation_kind")
        assert paid == {(team, "direct"): 12, (team, "idle"): 12}
