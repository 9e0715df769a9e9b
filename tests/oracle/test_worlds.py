"""The tools around the oracle: the comparison, the random worlds and how they are packed, written and shrunk."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from .compare import compare
from .exact import Row, money
from .example import Example, worked_example
from .oracle import AllocationKey, Books, calculate
from .summaries import books_of
from .workspace import SCHEMA_DAY
from .world_choices import BASES, CLASSES, END_STATES, IDLE_POLICIES, LONGEST_REACH, METHODS
from .worlds import World, pack, random_worlds, shrink, write_workspace


def as_sql_rows(books: Books) -> dict[str, list[Row]]:
    midnight = Example(books.day).at(0)
    return {
        "fct_cost_allocations": [
            {**key._asdict(), "usage_date": books.day, "amount": amount} for key, amount in books.allocations.items()
        ],
        "fct_pool_hours": [
            {**key._asdict(), **costs._asdict(), "hour_at": midnight + timedelta(hours=key.hour)}
            for key, costs in books.pool_hours.items()
        ],
        "fct_billed_costs": [
            {**key._asdict(), **costs._asdict(), "usage_date": books.day} for key, costs in books.billed.items()
        ],
    }


def test_the_comparison_names_what_differs() -> None:
    books = books_of(worked_example("hour"))
    rows = as_sql_rows(books)
    assert compare(books, rows) == []
    rows["fct_cost_allocations"][0]["amount"] += money(1)
    rows["fct_pool_hours"].pop()
    rows["fct_billed_costs"].append({**rows["fct_billed_costs"][0], "charge_key": "stranger"})
    rows["fct_billed_costs"].append({**rows["fct_billed_costs"][0], "usage_date": date(2000, 1, 1)})
    differences = compare(books, rows)
    assert [line.split(" ")[0] for line in differences] == [
        "fct_cost_allocations",
        "fct_pool_hours",
        "fct_billed_costs",
    ]
    assert "warehouse no row" in differences[1]
    assert "charge_key=stranger" in differences[2]


def days_of(row: Row) -> list[date]:
    days = (row["valid_to"] - row["valid_from"]).days
    return [row["valid_from"] + timedelta(days=day) for day in range(days)]


def test_packed_worlds_do_not_meet_and_survive_the_disk(tmp_path: Path) -> None:
    many = random_worlds(seed=7, count=24)
    packed = pack(many)
    write_workspace(packed, tmp_path)
    for world in many:
        tables = {}
        for table in world.tables:
            file = tmp_path / "data/landing" / table / f"date={world.day}" / "test.parquet"
            tables[table] = pq.read_table(file, partitioning=None).to_pylist() if file.exists() else []
        assert calculate(tables, packed.seeds, world.day) == books_of(world)
    assert {day - world.day for world in many for row in world.seeds["adjustments"] for day in days_of(row)} > {
        timedelta(days=-LONGEST_REACH),
        timedelta(days=LONGEST_REACH),
    }
    assert (tmp_path / "data/landing/landings" / SCHEMA_DAY / "_schema.parquet").exists()
    header, *rules = (tmp_path / "seeds/policy/payer_rules.csv").read_text().splitlines()
    assert header.startswith("rule_order,cluster_id,account")
    orders = [line.split(",")[0] for line in rules]
    assert len(set(orders)) == len(orders) == len(packed.seeds["payer_rules"])


def test_random_worlds_reach_every_kind_cause_and_component() -> None:
    keys: set[AllocationKey] = set()
    for world in random_worlds(seed=1, count=120):
        keys |= books_of(world).allocations.keys()
    assert {key.allocation_kind for key in keys} == {
        *("direct", "idle", "shared", "unattributed"),
        *("burst", "outcome_credit", "adjustment"),
    }
    assert {(key.component, key.idle_cause) for key in keys if key.idle_cause} == {
        *((component, cause) for component in ("gpu", "cpu", "memory", "energy") for cause in ("down", "reserved")),
        *((component, "unscheduled") for component in ("gpu", "cpu", "memory", "energy")),
        *((component, "stranded") for component in ("gpu", "energy")),
    }
    assert {key.component for key in keys if key.allocation_kind == "direct"} == {
        *("gpu", "cpu", "memory", "energy", "storage", "network", "license", "support", "other"),
    }


def test_random_worlds_draw_every_choice() -> None:
    many = random_worlds(seed=1, count=120)

    def drawn(table: str, column: str) -> set:
        return {row[column] for world in many for row in {**world.seeds, **world.tables}[table]}

    assert drawn("allocation_policies", "method") == set(METHODS)
    assert drawn("allocation_policies", "overhead_base") == set(BASES)
    assert drawn("allocation_policies", "burst_policy") == {None, "blended", "marginal"}
    assert drawn("allocation_policies", "intensity_metric") == {None, "sm", "tensor"}
    assert drawn("idle_policies", "policy") == set(IDLE_POLICIES)
    assert drawn("pools", "purchase_class") == {None, "reserved", "owned", "on_demand", "spot"}
    assert drawn("complexity_weights", "workload_class") == {*CLASSES, "*"}
    assert drawn("instance_types", "price_preset") == {None, "aws", "opencost", "datadog", "rounded"}
    assert drawn("jobs", "state") > {*END_STATES, "RUNNING"}
    kinds = {(row["adjustment_kind"], funder(row)) for world in many for row in world.seeds["adjustments"]}
    assert kinds == {(kind, by) for kind in ("percent", "amount", "rate") for by in ("platform", "all", "a team")}


def funder(adjustment: Row) -> str:
    return adjustment["funded_by"] if adjustment["funded_by"] in ("platform", "all") else "a team"


def test_shrinking_keeps_only_what_the_failure_needs() -> None:
    world = next(world for world in random_worlds(seed=3, count=50) if len(world.tables["jobs"]) > 5)
    culprits = world.tables["jobs"][1], world.tables["charges"][-1]

    def fails(candidate: World) -> bool:
        return culprits[0] in candidate.tables["jobs"] and culprits[1] in candidate.tables["charges"]

    small = shrink(world, fails)
    kept = {table: rows for table, rows in small.tables.items() if rows}
    assert kept == {"jobs": [culprits[0]], "charges": [culprits[1]]}
    assert small.seeds["cost_rules"] == []
    assert small.seeds["pools"] == world.seeds["pools"]
