"""The oracle itself: it reproduces the worked example, closes its books on any world, and splits exactly."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .charges import day_part
from .energy import energy_weights, power_draws
from .exact import DAY, Row, matches, round_half_away, split
from .example import CLOSE_ENOUGH, POOL, WORKED_EXAMPLE, Example, company, gpus, worked_example
from .oracle import PoolHourKey
from .summaries import books_of, by, team_totals
from .usage import usage_of_day
from .worlds import World, landed, worlds

some_worlds = settings(max_examples=60, deadline=None, database=None, derandomize=True)


# --- the worked example ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", WORKED_EXAMPLE)
def test_the_worked_example_comes_out_as_written(policy: str) -> None:
    totals = team_totals(books_of(worked_example(policy)))
    for team, written in zip(("vision", "nlp", "speech", "platform"), WORKED_EXAMPLE[policy], strict=True):
        assert abs(totals.get(team, 0) - Decimal(written)) <= CLOSE_ENOUGH
    assert sum(totals.values()) == 600


def test_the_worked_example_hour_by_hour() -> None:
    books = books_of(worked_example("hour"))
    first = books.pool_hours[PoolHourKey(POOL, "gpu", "USD", 0)]
    assert first == tuple(map(Decimal, ("190", "118.75", "0", "0", "23.75", "47.5")))
    last = books.pool_hours[PoolHourKey(POOL, "gpu", "USD", 2)]
    assert last == tuple(map(Decimal, ("190", "0", "95", "95", "0", "0")))
    direct = by(books, "component", "job_key", "allocation_kind")
    assert direct["gpu", "c:c1", "direct"] == Decimal("23.75")


# --- small cases worked by hand ----------------------------------------------------------------------------


def test_the_parts_of_a_charge_follow_the_node_from_pool_to_pool() -> None:
    example = company()
    example.node("n1", -24, 1.5, pool="x")
    example.node("n1", 1.5, 2, pool="y", instance_type="unheard-of")
    example.charge("line", "compute", "8", 0, 24, resource_id="i-n1")
    billed = {key[1:]: costs.billed_cost for key, costs in books_of(example.done()).billed.items()}
    gpu_cpu_memory = {("x", "gpu"): "5.7", ("x", "cpu"): "0.18", ("x", "memory"): "0.12", ("y", "gpu"): "2"}
    assert billed == {key: Decimal(cost) for key, cost in gpu_cpu_memory.items()}


def test_a_credit_is_spread_over_its_billing_period_and_an_instant_is_not_spread() -> None:
    example = company()
    month = {"billing_period_start_at": example.at(-48), "billing_period_end_at": example.at(48)}
    example.charge("credit", "compute", "-4", 3, 3, charge_category="Credit", **month)
    example.charge("instant", "compute", "1", 3.5, 3.5, **month)
    hours = books_of(example.done()).pool_hours
    assert hours[PoolHourKey(POOL, "cpu", "USD", 0)].cost == Decimal("-0.041666667")
    assert hours[PoolHourKey(POOL, "cpu", "USD", 3)].cost == Decimal("-0.041666667") + 1
    assert sum(hour.cost for hour in hours.values()) == 0


def test_cores_are_given_back_while_a_job_is_suspended_and_unknown_nodes_join_the_partitions_pool() -> None:
    example = company(partition="p")
    example.job("a", "vision", "ghost1,ghost2", (1, 4, 8), 0, 4, suspended_ms=3_600_000)
    example.job("b", "nlp", None, (1, 4, 8), 0, 4, partition="elsewhere")
    world = example.done()
    hours = usage_of_day(landed(world), world.seeds, world.day).node_hours
    assert {key[1:3] for key in hours} == {("ghost1", POOL), ("ghost2", POOL), ("", "unmapped")}
    ghost = hours["c", "ghost1", POOL, 0]
    assert ghost.held["gpu"]["c:a"] == 12_600 * 3_600_000
    assert ghost.held["cpu"]["c:a"] == ghost.capacity("cpu") == 2000 * 2_700_000


def test_more_payers_than_nano_units() -> None:
    example = company()
    example.policy("idle_policies", pool_id="*", idle_cause="*", policy="platform")
    example.node("n1", 0, 1)
    for number in range(8):
        example.job(f"j{number}", "vision", "n1", (1, 12, 128), 0, 1)
    example.policy("cost_rules", rule_order=1, service_name="cards", component="gpu")
    example.charge("line", "cards", "0.000000003", 0, 24, resource_id="i-n1")
    amounts = books_of(example.done()).allocations
    assert {key.job_key: amount for key, amount in amounts.items()} == {
        "c:j1": Decimal("1e-9"),
        "c:j3": Decimal("1e-9"),
        "c:j6": Decimal("1e-9"),
    }


def test_labelled_energy_is_the_jobs_and_the_rest_follows_time() -> None:
    example = company()
    example.policy("idle_policies", pool_id="*", idle_cause="*", policy="platform")
    example.policy("cost_rules", rule_order=1, service_name="power", component="energy", pool_id=POOL)
    example.node("n1", 0, 1, gpu_units=gpus(4))
    example.job("a", "vision", "n1", (1, 1, 1), 0, 1)
    example.job("b", "nlp", "n1", (1, 1, 1), 0, 1)
    for gpu, part, watts in ((0, "a", 400.0), (1, None, 100.0), (2, None, 100.0), (3, None, 9.3e18)):
        place = {"cluster_id": "c", "node_name": "n1", "gpu_index": gpu, "part_id": part}
        example.add("gpu_samples", **place, sampled_at=example.at(0), interval_ms=3_600_000, power_watts=watts)
    example.charge("line", "power", "600", 0, 1)
    # b and the two idle GPUs share the 200 W that no label claims.
    assert by(books_of(example.done()), "team_id") == {
        ("vision",): 400,
        ("nlp",): Decimal("66.666666667"),
        ("platform",): Decimal("133.333333333"),
    }


def test_overhead_follows_direct_cost_in_the_reporting_currency() -> None:
    example = company()
    example.policy("currencies", currency="EUR", rate_to_reporting=Decimal(2))
    example.policy(
        "allocation_policies", pool_id="*", component="support", method="direct", overhead_base="direct_cost"
    )
    for order, team in enumerate(("vision", "nlp", "platform")):
        example.policy("payer_rules", rule_order=10 + order, tag=f"team={team}", team_id=team)
    example.policy("cost_rules", rule_order=1, service_name="helpdesk", component="support")
    example.policy("cost_rules", rule_order=2, service_name="gifts", component="other", has_owner=True)
    for key, team, amount, currency in (
        ("g1", "vision", "1", "EUR"),
        ("g2", "nlp", "3", "USD"),
        ("g3", "nlp", "-1", "USD"),
        ("g4", "platform", "9", "USD"),
        ("g5", "nobody", "5", "USD"),
    ):
        example.charge(key, "gifts", amount, 0, 24, tags=f'{{"team": "{team}"}}', currency=currency)
    example.charge("h", "helpdesk", "10", 0, 24)
    paid = by(books_of(example.done()), "team_id", "allocation_kind")
    assert paid["vision", "shared"] == paid["nlp", "shared"] == 5
    assert paid["unattributed", "unattributed"] == 5


def test_seats_drive_a_license_and_an_open_one_ends_at_its_as_of_time() -> None:
    example = Example()
    example.policy("pools", pool_id="lic", pool_kind="license", resource="solver")
    example.policy("cost_rules", rule_order=1, component="license", pool_id="lic", driver="seat_hours")
    for user, seats, back in (("ann", 2, 3), ("bob", 1, None)):
        times = {"checked_out_at": example.at(1), "checked_in_at": back and example.at(back)}
        example.add("license_usage", product="solver", user_name=user, seats=seats, as_of_at=example.at(5), **times)
    example.charge("line", "anything", "3", 0, 24)
    assert by(books_of(example.done()), "user_name") == {("ann",): Decimal("1.5"), ("bob",): Decimal("1.5")}


def test_stored_bytes_times_time_drive_storage() -> None:
    example = Example()
    example.policy("pools", pool_id="fs", pool_kind="storage", resource="lustre")
    example.policy("cost_rules", rule_order=1, component="storage", pool_id="fs", driver="gib_hours_stored")
    example.policy("payer_rules", rule_order=1, path="/a/%", team_id="vision")
    for path, hours in (("/a/x", 24), ("/b", 8)):
        times = {"valid_from_at": example.at(0), "valid_to_at": example.at(hours)}
        example.add("storage_usage", filesystem="lustre", path=path, owner="ann", stored_bytes=2**30, **times)
    example.charge("line", "anything", "4", 0, 24)
    assert by(books_of(example.done()), "team_id", "user_name", "allocation_kind") == {
        ("vision", "ann", "direct"): 3,
        ("unattributed", "ann", "direct"): 1,
    }


# --- laws on random worlds ---------------------------------------------------------------------------------


@some_worlds
@given(worlds())
def test_allocations_sum_to_the_allocatable_cost(world: World) -> None:
    books = books_of(world)
    currency = {charge["charge_key"]: charge["currency"] for charge in world.tables["charges"]}
    left: dict[tuple, Decimal] = defaultdict(Decimal)
    for key, costs in books.billed.items():
        left[key.pool_id, key.component, currency[key.charge_key.split(" > ")[0]]] += costs.allocatable_cost
    for key, amount in books.allocations.items():
        left[key.pool_id, key.component, key.currency] -= amount
    assert not any(left.values())


@some_worlds
@given(worlds())
def test_what_is_moved_sums_to_zero(world: World) -> None:
    moved = by(books_of(world), "pool_id", "component", "currency", "allocation_kind")
    assert not any(amount for key, amount in moved.items() if key[3] in ("burst", "outcome_credit", "adjustment"))


@some_worlds
@given(worlds())
def test_pool_hours_are_used_or_idle_and_the_allocations_say_the_same(world: World) -> None:
    books = books_of(world)
    hourly: dict[tuple, Decimal] = defaultdict(Decimal)
    for key, hour in books.pool_hours.items():
        cost, *sides = hour
        assert cost == sum(sides) or not any(sides)  # the latter: no known capacity
        hourly[key.pool_id, key.component, key.currency, "direct", None] += hour.used_cost
        for cause in ("down", "reserved", "stranded", "unscheduled"):
            hourly[key.pool_id, key.component, key.currency, "idle", cause] += getattr(hour, f"{cause}_cost")
    for key, amount in by(books, "pool_id", "component", "currency", "allocation_kind", "idle_cause").items():
        if key[1] in ("gpu", "cpu", "memory", "energy") and key[3] != "unattributed":
            hourly[key] -= amount
    assert not any(hourly.values())


@some_worlds
@given(worlds())
def test_every_unit_of_capacity_is_used_or_idle_with_a_cause(world: World) -> None:
    for node_hour in usage_of_day(landed(world), world.seeds, world.day).node_hours.values():
        for resource, idle in node_hour.idle.items():
            assert all(amount >= 0 for amount in idle.values())
            assert node_hour.used(resource) + sum(idle.values()) == node_hour.capacity(resource)


@some_worlds
@given(worlds())
def test_measured_energy_is_given_out_once(world: World) -> None:
    tables = landed(world)
    usage = usage_of_day(tables, world.seeds, world.day)
    draws = power_draws(tables["gpu_samples"], usage, world.day)
    weights = energy_weights(usage, tables["gpu_samples"], world.day, minimum_coverage=1)
    for key, draw in draws.items():
        capacity = usage.node_hours[key].inventory["gpu"]
        if weights[key].is_energy and 0 < capacity <= draw.covered_ms * 25_200 * 1000:
            given_out = sum(weights[key].jobs.values()) + sum(weights[key].causes.values())
            assert given_out == sum(draw.by_part.values())


@some_worlds
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_means_nothing(world: World, random: Random) -> None:
    def shuffled(tables: dict[str, list[Row]]) -> dict[str, list[Row]]:
        return {name: random.sample(rows, len(rows)) for name, rows in tables.items()}

    assert books_of(replace(world, tables=shuffled(world.tables), seeds=shuffled(world.seeds))) == books_of(world)


# --- the split ---------------------------------------------------------------------------------------------

amounts = st.integers(-(10**20), 10**20)
weight_lists = st.lists(st.integers(0, 10**15), min_size=1, max_size=12).filter(any)


@given(amounts, weight_lists)
def test_a_split_adds_up_and_is_within_a_nano_unit_of_the_ideal(amount: int, weights: list[int]) -> None:
    parts = split(amount, weights)
    assert sum(parts) == amount
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - Fraction(amount * weight, sum(weights))) <= 1
        assert part == 0 or (weight > 0 and (part > 0) == (amount > 0))


@given(amounts, weight_lists, st.integers(1, 10**6))
def test_a_common_factor_changes_nothing(amount: int, weights: list[int], factor: int) -> None:
    assert split(amount, [weight * factor for weight in weights]) == split(amount, weights)


@given(amounts, weight_lists)
def test_a_payer_of_weight_zero_changes_nothing(amount: int, weights: list[int]) -> None:
    assert [*split(amount, weights), 0] == split(amount, [*weights, 0])


def test_a_split_without_weight_is_refused() -> None:
    with pytest.raises(ValueError, match="fallback"):
        split(1, [0, -5])


@given(st.integers(-(10**18), 10**18), st.integers(1, 10**6))
def test_halves_round_away_from_zero(numerator: int, denominator: int) -> None:
    nearest = Fraction(numerator, denominator)
    rounded = round_half_away(numerator, denominator)
    assert abs(nearest - rounded) <= Fraction(1, 2)
    if nearest.denominator == 2:
        assert rounded == (Decimal(numerator) / denominator).quantize(Decimal(1), ROUND_HALF_UP)


@given(amounts, st.integers(-5 * DAY, 0), st.integers(1, 5 * DAY))
def test_the_days_of_a_charge_add_up_to_it(amount: int, start: int, length: int) -> None:
    seen = [day_part(amount, (start - day * DAY, start + length - day * DAY)) for day in range(-6, 7)]
    assert sum(seen) == amount


def test_patterns_match_like_sql() -> None:
    for matcher, value in ((None, None), ("", "a"), ("a%", "abc"), ("a_c", "abc"), ("k=v%", {"k": "v1"})):
        assert matches(matcher, value)
    for matcher, value in (("a%", None), ("a.c", "abc"), ("A%", "abc"), ("k=v", {"j": "v"}), ("k=v", {})):
        assert not matches(matcher, value)
