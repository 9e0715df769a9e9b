"""The warehouse against the oracle: hundreds of random companies in one build, compared to the last decimal.

Each company lives on a UTC day of its own, under policies that are valid on that day alone. So one build works out
all of them, and a company that fails is rebuilt alone, smaller and smaller, until only what matters is left.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from orchestration.dbt import Window, build
from orchestration.workspace import Workspace

from .compare import TABLES, compare
from .exact import Row
from .example import CLOSE_ENOUGH, WORKED_EXAMPLE, moving_company, worked_example
from .oracle import calculate
from .seed_tables import UNDATED
from .workspace import landed, pack, write_workspace
from .worlds import DAYS_APART, World, random_worlds, shrink

SEED = 7
COUNT = 300
SHRINKING_SECONDS = 180
"""A step of shrinking is a build of a day. Beyond this, what is left is shown as it is."""


@dataclass(frozen=True)
class Built:
    """Companies, and what the warehouse made of them: rows by table and day."""

    root: Path
    worlds: list[World]
    rows: dict[str, dict[date, list[Row]]]

    @property
    def warehouse(self) -> Path:
        return self.root / "data" / "warehouse.duckdb"

    def differences(self, world: World) -> list[str]:
        books = calculate(landed(world), world.seeds, world.day)
        return compare(books, {table: self.rows[table].get(world.day, []) for table in TABLES})


def build_worlds(worlds: list[World], root: Path) -> Built:
    write_workspace(pack(worlds), root)
    workspace = Workspace(root / "sources.yml", root / "seeds", root / "data")
    days = [world.day for world in worlds]
    # The day after the last one is landed, too.
    build(workspace, Window(min(days), max(days) + timedelta(days=2)), tests=False)
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        return Built(root, worlds, {table: by_day(warehouse, table) for table in TABLES})


def by_day(warehouse: duckdb.DuckDBPyConnection, table: str) -> dict[date, list[Row]]:
    cursor = warehouse.execute(f"from core.{table}")
    names = [column[0] for column in cursor.description]
    found: dict[date, list[Row]] = {}
    for values in cursor.fetchall():
        row = dict(zip(names, values, strict=True))
        found.setdefault(row["usage_date"], []).append(row)
    return found


def among_others(world: World, index: int, days: int = 1) -> World:
    """An example, with policies of its own days alone and rule numbers of its own."""
    first, end = world.day, world.day + timedelta(days=days)

    def only(row: Row) -> Row:
        return row | {"valid_from": row["valid_from"] or first, "valid_to": row["valid_to"] or end}

    seeds = {name: rows if name in UNDATED else [only(row) for row in rows] for name, rows in world.seeds.items()}
    for rule in (*seeds["payer_rules"], *seeds["cost_rules"], *seeds["workload_rules"]):
        rule["rule_order"] += index * 1000
    return replace(world, index=index, seeds=seeds)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The random companies, and after their last day the worked example under each of its policies."""
    worlds = random_worlds(SEED, COUNT)
    for index, policy in enumerate(WORKED_EXAMPLE, start=COUNT):
        worlds.append(among_others(worked_example(policy, worlds[-1].day + timedelta(days=DAYS_APART)), index))
    moving = moving_company(worlds[-1].day + timedelta(days=DAYS_APART))
    worlds.append(among_others(moving, len(worlds), days=2))
    return build_worlds(worlds, tmp_path_factory.mktemp("worlds"))


def test_the_warehouse_and_the_oracle_agree_on_every_random_company(built: Built, tmp_path: Path) -> None:
    failing = [world for world in built.worlds if built.differences(world)]
    if failing:
        pytest.fail(explain(failing, built, tmp_path), pytrace=False)


def test_allocations_sum_to_the_bill_per_day_pool_component_and_currency(built: Built) -> None:
    with duckdb.connect(str(built.warehouse), read_only=True) as warehouse:
        compared, differing = warehouse.execute(
            """
            with sides as (
                select usage_date, pool_id, component, currency, allocatable_cost as billed, 0 as allocated
                from core.fct_billed_costs
                union all
                select usage_date, pool_id, component, currency, 0, amount from core.fct_cost_allocations
            ),
            sums as (
                select sum(billed) - sum(allocated) as difference from sides
                group by usage_date, pool_id, component, currency
            )
            select count(*), count(*) filter (difference <> 0) from sums
            """
        ).fetchone()
    assert compared > COUNT
    assert differing == 0


@pytest.mark.parametrize("policy", WORKED_EXAMPLE)
def test_the_worked_example_of_the_documentation_comes_out_of_the_warehouse(built: Built, policy: str) -> None:
    world = built.worlds[COUNT + list(WORKED_EXAMPLE).index(policy)]
    totals = sums(built.rows["fct_cost_allocations"][world.day])
    written = dict(zip(("vision", "nlp", "speech", "platform"), map(Decimal, WORKED_EXAMPLE[policy]), strict=True))
    assert {team for team, amount in totals.items() if amount} == {team for team, amount in written.items() if amount}
    assert all(abs(totals.get(team, 0) - amount) <= CLOSE_ENOUGH for team, amount in written.items())
    assert sum(totals.values()) == 600


def test_somebody_who_moves_is_charged_to_both_teams(built: Built) -> None:
    """Half a day of ann's run is direct cost on each of the two days, the other half of the node's day is idle."""
    moving = built.worlds[-1]
    for day, team in ((moving.day, "vision"), (moving.day + timedelta(days=1), "nlp")):
        assert sums(built.rows["fct_cost_allocations"][day]) == {team: 24}


def sums(allocations: Iterable[Row]) -> dict[str, Decimal]:
    totals: dict[str, Decimal] = {}
    for row in allocations:
        totals[row["team_id"]] = totals.get(row["team_id"], Decimal(0)) + row["amount"]
    return totals


# --- a failure, made small enough to read ------------------------------------------------------------------


def explain(failing: list[World], built: Built, folder: Path) -> str:
    first = failing[0]
    deadline = time.monotonic() + SHRINKING_SECONDS
    attempts = 0

    def still_fails(world: World) -> bool:
        nonlocal attempts
        if time.monotonic() > deadline:
            return False
        attempts += 1
        return bool(rebuilt(world, folder))

    if not still_fails(first):
        return (
            f"{len(failing)} of {len(built.worlds)} companies differ, the first is number {first.index} on {first.day};"
            " built alone it agrees, so its books depend on the company's neighbours:\n"
            + "\n".join(built.differences(first)[:20])
        )
    smallest = shrink(first, still_fails)
    return (
        f"{len(failing)} of {len(built.worlds)} companies differ. Number {first.index}, reduced in {attempts} builds:\n"
        + "\n".join(described(smallest))
        + "\n\nwhere the books differ:\n"
        + "\n".join(rebuilt(smallest, folder)[:20])
    )


def rebuilt(world: World, root: Path) -> list[str]:
    """The differences of one company that has a warehouse to itself; only the parsed project is used again."""
    for made in (root / "data" / "landing", root / "seeds"):
        shutil.rmtree(made, ignore_errors=True)
    (root / "data" / "warehouse.duckdb").unlink(missing_ok=True)
    return build_worlds([world], root).differences(world)


def described(world: World) -> list[str]:
    rows = {**world.tables, **{name: rows for name, rows in world.seeds.items() if name not in UNDATED}}
    hidden = ("source", "delivery", "line", "delivered_at", "reason")
    return [
        f"  {table}: " + ", ".join(f"{k}={v}" for k, v in row.items() if v is not None and k not in hidden)
        for table, found in rows.items()
        for row in found
    ]
