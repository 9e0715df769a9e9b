"""The fairness axioms, on kind `direct` in pool-hours that cost something, over random worlds.

Energy is left out where jobs are cut or enlarged: its weights are measured or estimated, not held.
"""

from __future__ import annotations

from collections import defaultdict
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from .ledger import PoolHourKey
from .oracle import Day
from .summaries import books_of, day_of
from .variations import changed, cut_in_size, cut_in_time, larger, single_parts, with_rows
from .worlds import Sizes, World, world

some_worlds = settings(max_examples=60, deadline=None, database=None, derandomize=True)
busy_worlds = st.integers(0, 2**32).map(lambda seed: world(seed, sizes=Sizes(nodes=3, jobs=6, charges=6, events=0)))
randoms = st.randoms(use_true_random=False)


def costly(day: Day) -> list[PoolHourKey]:
    return [key for key in day.direct if day.pool_hours[key][0] >= 0]


# --- inside a pool-hour ------------------------------------------------------------------------------------


@some_worlds
@given(busy_worlds)
def test_equal_weight_pays_equal_and_more_weight_never_pays_less(world: World) -> None:
    """To one nano-unit, per pool-hour and component."""
    day = day_of(world)
    for key in costly(day):
        weights = day.weights[key.pool_id, key.component][key.hour].jobs
        assert weights.keys() == day.direct[key].keys()
        ranked = sorted((weight, day.direct[key][payer]) for payer, weight in weights.items())
        for lower, (weight, paid) in enumerate(ranked):
            for other_weight, other_paid in ranked[lower + 1 :]:
                assert paid <= other_paid + 1
                assert weight < other_weight or abs(paid - other_paid) <= 1


@some_worlds
@given(busy_worlds)
def test_without_use_there_is_no_direct_cost(world: World) -> None:
    day = day_of(world)
    for key, parts in day.direct.items():
        held = day.weights[key.pool_id, key.component][key.hour].held
        assert all(held[payer] > 0 for payer in parts)


# --- the same work, otherwise ------------------------------------------------------------------------------


def comparable(world: World) -> World:
    """Work keeps its weight when it is cut: no rule asks for its size, and no telemetry changes it."""
    world = changed(world, "workload_rules", min_gpus=None, max_gpus=None)
    return changed(world, "allocation_policies", intensity_metric=None)


def by_payer(day: Day) -> dict[tuple, tuple[int, int]]:
    """Per pool-hour, team, project and user: what is paid, and by how many jobs."""
    found: dict[tuple, list[int]] = defaultdict(lambda: [0, 0])
    for key in costly(day):
        if key.component != "energy":
            for (team, project, user, _), amount in day.direct[key].items():
                found[key, team, project, user][0] += amount
                found[key, team, project, user][1] += 1
    return {key: (amount, jobs) for key, (amount, jobs) in found.items()}


def assert_unchanged(before: World, after: World) -> None:
    old, new = by_payer(day_of(before)), by_payer(day_of(after))
    assert old.keys() == new.keys()
    for key, (amount, _) in old.items():
        assert abs(new[key][0] - amount) <= new[key][1]


@some_worlds
@given(busy_worlds, randoms)
def test_cutting_a_job_in_time_changes_nothing(world: World, random: Random) -> None:
    """Under every method, one nano-unit per part."""
    world = comparable(world)
    jobs = single_parts(world)
    assume(jobs)
    assert_unchanged(world, cut_in_time(world, random.choice(jobs), random.random()))


@some_worlds
@given(busy_worlds, randoms)
def test_cutting_a_job_in_size_changes_nothing(world: World, random: Random) -> None:
    """Under `direct` and `complexity`; what `time` does is in the tests of gaming."""
    world = comparable(world)
    methods = [row | {"method": "direct"} if row["method"] == "time" else row for row in policies(world)]
    world = with_rows(world, "allocation_policies", methods)
    jobs = single_parts(world)
    assume(jobs)
    assert_unchanged(world, cut_in_size(world, random.choice(jobs), random.random()))


def policies(world: World) -> list[dict]:
    return world.seeds["allocation_policies"]


@some_worlds
@given(busy_worlds, randoms)
def test_holding_more_never_pays_less(world: World, random: Random) -> None:
    world = changed(world, "workload_rules", min_gpus=None, max_gpus=None)
    assume(world.tables["jobs"])
    job = random.choice(world.tables["jobs"])
    before, after = day_of(world), day_of(larger(world, job, 3))
    for key in costly(before):
        for payer, paid in before.direct[key].items():
            if payer[3] == job["job_key"] and key.component != "energy":
                assert after.direct[key][payer] >= paid - 1


@some_worlds
@given(busy_worlds)
def test_a_name_means_nothing_unless_a_rule_reads_it(world: World) -> None:
    world = changed(world, "workload_rules", job_name=None)
    assert books_of(changed(world, "jobs", job_name="renamed")) == books_of(world)
