"""The yardsticks of fairness: `rpt_fairness` against the definition of the Shapley value, and methods side by side.

What a group of teams would have cost alone is the pool's cost times the group's peak hour over the peak of all. A
team's Shapley value is what it adds to that when teams join one after the other, on the mean over all orders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import accumulate, combinations, pairwise, permutations
from math import factorial, floor
from pathlib import Path
from random import Random

import duckdb
import pytest

from orchestration.workspace import Workspace
from tests.compiled import answer, compiled
from tests.warehouses import DEMO

NANO = 10**9
Demand = dict[datetime, dict[str, int]]
"""Of every hour, what each team held, in nano-units."""


@dataclass(frozen=True)
class Game:
    """A pool's month: who held how much when."""

    demand: Demand

    @property
    def teams(self) -> list[str]:
        return sorted({team for held in self.demand.values() for team in held})

    def peak(self, group: frozenset[str]) -> int:
        return max(sum(held.get(team, 0) for team in group) for held in self.demand.values())


def by_every_order(game: Game) -> dict[str, Fraction]:
    """Straight from the definition: each team's mean addition to the peak, over all orders in which teams can join."""
    peak = cache(game.peak)
    added = dict.fromkeys(game.teams, 0)
    for order in permutations(game.teams):
        groups = accumulate(order, lambda group, team: group | {team}, initial=frozenset())
        for team, (before, after) in zip(order, pairwise(groups), strict=True):
            added[team] += peak(after) - (peak(before) if before else 0)
    return {team: Fraction(addition, factorial(len(added))) for team, addition in added.items()}


def by_every_group(game: Game) -> dict[str, Fraction]:
    """The same for more teams than one can order: each group counts as often as it comes before the team."""
    peak = cache(game.peak)
    found = dict.fromkeys(game.teams, Fraction(0))
    for team in found:
        others = [other for other in game.teams if other != team]
        for size in range(len(found)):
            orders = factorial(size) * factorial(len(others) - size)
            for group in map(frozenset, combinations(others, size)):
                found[team] += (peak(group | {team}) - (peak(group) if group else 0)) * orders
    return {team: value / factorial(len(found)) for team, value in found.items()}


def split(amount: Decimal, weights: Mapping[str, Fraction]) -> dict[str, Decimal]:
    """The project's own split, in order of teams: differences of rounded running shares."""
    whole = Fraction(amount) * NANO
    total = sum(weights.values())
    running = accumulate((weights[team] for team in sorted(weights)), initial=Fraction(0))
    cuts = [half_away(whole * part / total) for part in running]
    return {
        team: Decimal(end - start) / NANO for team, (start, end) in zip(sorted(weights), pairwise(cuts), strict=True)
    }


def half_away(number: Fraction) -> int:
    rounded = floor(abs(number) + Fraction(1, 2))
    return rounded if number >= 0 else -rounded


# --- what the reports say ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["golden", "demo"])
def books(request: pytest.FixtureRequest) -> Iterator[duckdb.DuckDBPyConnection]:
    workspace: Workspace = request.getfixturevalue(request.param)
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        yield warehouse


def games(books: duckdb.DuckDBPyConnection) -> dict[tuple[date, str], Game]:
    """From the facts, by month and pool: GPU-time, or core-time in a pool of which no GPU was held."""
    demands: dict[tuple, Demand] = defaultdict(lambda: defaultdict(dict))
    rows = books.execute(
        """
        with used as (
            select
                date_trunc('month', usage_date)::date as month_date, pool_id, hour_at, team_id,
                sum(gpu_seconds) as gpus, sum(cpu_core_seconds) as cores
            from core.fct_job_usage_hourly
            group by all
        )
        select
            month_date, pool_id, hour_at, team_id,
            if(sum(gpus) over (partition by month_date, pool_id) > 0, gpus, cores) as held
        from used
        qualify held > 0
        """
    ).fetchall()
    for month, pool, hour, team, held in rows:
        demands[month, pool][hour][team] = int(held * NANO)
    return {key: Game(dict(demand)) for key, demand in demands.items()}


@dataclass(frozen=True)
class Reported:
    pool_cost: Decimal
    costs: dict[str, Decimal]
    methods: set[str]


def reported(books: duckdb.DuckDBPyConnection) -> dict[tuple[date, str, str], Reported]:
    found: dict[tuple, Reported] = {}
    for month, pool, currency, team, pool_cost, cost, method in books.execute(
        """
        select month_date, pool_id, currency, team_id, pool_cost, shapley_cost, shapley_method
        from reporting.rpt_fairness
        """
    ).fetchall():
        pools = found.setdefault((month, pool, currency), Reported(pool_cost, {}, set()))
        assert pools.pool_cost == pool_cost
        if method:
            pools.costs[team] = cost
            pools.methods.add(method)
        else:
            assert cost == 0, f"{team} used nothing of {pool}"
    return found


def test_shapley_costs_are_those_of_the_definition_to_the_last_decimal(books: duckdb.DuckDBPyConnection) -> None:
    known = games(books)
    compared = 0
    for (month, pool, _), found in reported(books).items():
        if (month, pool) not in known:
            assert not found.costs, f"nobody used {pool}"
            continue
        game = known[month, pool]
        assert found.methods == {"exact"}
        assert found.costs == split(found.pool_cost, by_every_order(game))
        assert sum(found.costs.values()) == found.pool_cost
        compared += 1
    assert compared >= 2


def test_the_two_ways_to_the_definition_are_one() -> None:
    game = random_game(Random(3), teams=6, hours=5)
    assert by_every_order(game) == by_every_group(game)


def test_what_teams_pay_is_told_as_the_books_have_it(books: duckdb.DuckDBPyConnection) -> None:
    compared, differing = books.execute(
        """
        with charged as (
            select
                date_trunc('month', usage_date)::date as month_date, pool_id, team_id, currency, sum(amount) as amount,
                sum(amount) filter (allocation_kind = 'idle') as idle
            from core.fct_cost_allocations
            where component in ('gpu', 'cpu', 'memory', 'energy')
            group by all
        ),
        pools as (
            select month_date, pool_id, currency, sum(amount) as amount from charged group by all
        )
        select
            count(*),
            count(*) filter (
                fairness.charged_cost <> coalesce(charged.amount, 0)
                or fairness.idle_cost <> coalesce(charged.idle, 0)
                or fairness.pool_cost <> pools.amount
                or fairness.shapley_distance <> fairness.charged_cost - fairness.shapley_cost
            )
        from reporting.rpt_fairness as fairness
        left join charged using (month_date, pool_id, team_id, currency)
        left join pools using (month_date, pool_id, currency)
        """
    ).fetchone()
    assert compared > 5
    assert differing == 0


# --- methods side by side ----------------------------------------------------------------------------------


def test_under_every_method_the_teams_pay_the_same_together(books: duckdb.DuckDBPyConnection) -> None:
    sums = books.execute(
        """
        with used as (
            select date_trunc('month', usage_date)::date as month_date, currency, sum(used_cost) as used_cost
            from core.fct_pool_hours
            where component in ('gpu', 'cpu', 'memory')
            group by all
        )
        select
            used_cost, sum(charged_cost), sum(direct_method_cost), sum(time_method_cost), sum(complexity_method_cost)
        from reporting.rpt_method_comparison
        inner join used using (month_date, currency)
        group by month_date, currency, used_cost
        """
    ).fetchall()
    assert sums
    for used, *methods in sums:
        assert methods == [used] * 4


def test_the_charged_cost_is_the_direct_cost_of_the_books(books: duckdb.DuckDBPyConnection) -> None:
    direct = {
        (month, team, currency): amount
        for month, team, currency, amount in books.execute(
            """
            select date_trunc('month', usage_date)::date, team_id, currency, sum(amount)
            from core.fct_cost_allocations
            where allocation_kind = 'direct' and component in ('gpu', 'cpu', 'memory')
            group by all
            """
        ).fetchall()
    }
    told = books.execute(
        """
        select month_date, team_id, currency, charged_cost, lowest_cost, highest_cost, range_cost,
            direct_method_cost, time_method_cost, complexity_method_cost
        from reporting.rpt_method_comparison
        """
    ).fetchall()
    assert {(month, team, currency): charged for month, team, currency, charged, *_ in told} == direct
    for *_, lowest, highest, between, direct_cost, time_cost, complexity_cost in told:
        costs = (direct_cost, time_cost, complexity_cost)
        assert (lowest, highest, between) == (min(costs), max(costs), max(costs) - min(costs))


# --- more teams than can be ordered ------------------------------------------------------------------------

DAY = DEMO.start
POOL_COST = Decimal("1000.000000001")
CLOSE_ENOUGH = Decimal("0.02") * POOL_COST
"""How far 256 orders may be off: their mean has a sixteenth of the spread of a single one."""


def random_game(random: Random, teams: int, hours: int, largest: int = 64) -> Game:
    """Teams of very different sizes that are not always there."""
    names = [f"team-{number:02}" for number in range(teams)]
    sizes = {name: random.randint(1, largest) for name in names}
    demand: Demand = {}
    for hour in range(hours):
        held = {name: random.randint(0, size) * 3600 * NANO for name, size in sizes.items() if random.random() < 0.7}
        demand[datetime(DAY.year, DAY.month, DAY.day) + timedelta(hours=hour)] = {k: v for k, v in held.items() if v}
    return Game(demand)


@dataclass(frozen=True)
class Report:
    """The report's own SQL, on facts that hold some pools and nothing else."""

    sql: str
    like: Path

    def on(self, pools: Mapping[str, Game], threads: int = 2) -> dict[str, Reported]:
        day = {"usage_date": DAY}
        idle = {**day, "component": "gpu", "currency": "USD", "team_id": "platform"}
        idle |= {"month_date": DAY.replace(day=1), "idle_cost": POOL_COST, "total_cost": POOL_COST}
        tables = {
            "fct_pool_days": [{**day, "pool_id": pool, "pool_name": pool} for pool in pools],
            "rpt_team_costs_daily": [{**idle, "pool_id": pool} for pool in pools],
            "fct_team_hours": [
                {"usage_date": hour.date(), "hour_at": hour, "pool_id": pool, "team_id": team}
                | {"gpu_seconds": Decimal(held) / NANO, "cpu_core_seconds": 0}
                for pool, game in pools.items()
                for hour, teams in game.demand.items()
                for team, held in teams.items()
            ],
        }
        found = {pool: Reported(POOL_COST, {}, set()) for pool in pools}
        for row in answer(self.sql, tables, self.like, threads):
            if row["shapley_method"]:
                found[row["pool_id"]].costs[row["team_id"]] = row["shapley_cost"]
                found[row["pool_id"]].methods.add(row["shapley_method"])
        return found


@pytest.fixture(scope="module")
def report(golden: Workspace) -> Report:
    return Report(compiled(golden, ["rpt_fairness"], DEMO)["rpt_fairness"], golden.warehouse)


def test_above_twelve_teams_orders_are_drawn_and_said_to_be(report: Report) -> None:
    large, small = random_game(Random(1), teams=14, hours=6), random_game(Random(2), teams=5, hours=6)
    found = report.on({"large": large, "small": small})
    assert found["large"].methods == {"sampled, 256 orders"}
    assert sum(found["large"].costs.values()) == POOL_COST
    exact = split(POOL_COST, by_every_group(large))
    assert found["large"].costs.keys() == exact.keys()
    assert max(abs(found["large"].costs[team] - cost) for team, cost in exact.items()) < CLOSE_ENOUGH
    assert found["small"] == Reported(POOL_COST, split(POOL_COST, by_every_order(small)), {"exact"})


def test_the_orders_are_the_same_whoever_draws_them(report: Report) -> None:
    game, other = random_game(Random(1), teams=14, hours=6), random_game(Random(5), teams=13, hours=3)
    backwards = Game(dict(reversed(game.demand.items())))
    assert report.on({"large": game}, threads=1)["large"] == report.on({"other": other, "large": backwards})["large"]


def test_twelve_teams_on_8000_gpus_are_still_worked_out_in_full(report: Report) -> None:
    game = random_game(Random(4), teams=12, hours=4, largest=8_000)
    assert report.on({"pool": game})["pool"] == Reported(POOL_COST, split(POOL_COST, by_every_group(game)), {"exact"})
