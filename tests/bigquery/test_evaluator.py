"""Gate (b): every model gives the same rows on Google's reference evaluator as on DuckDB, to the last digit.

The small world is the golden day, and random companies on the days around a change of clocks and the end of a month,
with what is awkward about companies in it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from orchestration.dbt import Window, build
from orchestration.workspace import Workspace
from tests.bigquery.gates import Outcome, Warehouse, compare, differences
from tests.bigquery.google import Tables, answer
from tests.bigquery.project import compiled
from tests.golden.company import make_workspace
from tests.oracle.worlds import World, pack, world, write_workspace
from tests.warehouses import GOLDEN, land_and_build

SEED = 7
INDEXES = range(7, 11)
"""Companies of 23, 26 and 29 March (when clocks change in Europe) and of 1 April; all days between are built."""


def random_companies() -> list[World]:
    """The oracle's companies, one of them with a user in a domain, whom a rule names, and a job of no length."""
    worlds = [world(SEED * 1_000_003 + index, index) for index in INDEXES]
    first = next(one for one in worlds if one.tables["jobs"] and one.seeds["payer_rules"])
    first.tables["jobs"][0]["user_name"] = "CORP\\ana"
    moment = datetime.combine(first.day, time(7), UTC)
    instant = {"job_key": "instant", "job_id": "instant", "part_id": "instant", "start_at": moment, "end_at": moment}
    first.tables["jobs"].append({**first.tables["jobs"][0], **instant, "suspended_ms": 0})
    rule = {**first.seeds["payer_rules"][0], "rule_order": first.index * 1000 + 1}
    empty = dict.fromkeys(("cluster_id", "account", "namespace", "label", "tag", "path"))
    first.seeds["payer_rules"].append({**rule, **empty, "user_name": "CORP\\a%"})
    return worlds


@pytest.fixture(scope="module")
def companies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workspace, Window]:
    root = tmp_path_factory.mktemp("companies")
    worlds = random_companies()
    write_workspace(pack(worlds), root)
    workspace = Workspace(root / "sources.yml", root / "seeds", root / "data")
    days = Window(worlds[0].day, worlds[-1].day + timedelta(days=2))
    build(workspace, days, tests=False)
    return workspace, days


def compared(workspace: Workspace, days: Window) -> Outcome:
    project = compiled(workspace, days)
    return compare(project, Warehouse(project, workspace.data, workspace.warehouse))


def test_every_model_of_random_companies_is_equal(companies, record_property):
    outcome = compared(*companies)
    record_property("gate", f"evaluator, random companies: {outcome}")
    assert outcome.problems == []


def test_every_model_of_the_golden_day_is_equal(tmp_path: Path, record_property):
    workspace = make_workspace(tmp_path)
    land_and_build(workspace, GOLDEN)
    outcome = compared(workspace, GOLDEN)
    record_property("gate", f"evaluator, golden day: {outcome}")
    assert outcome.problems == []


def test_the_awkward_is_in_the_world(companies):
    workspace, days = companies
    assert date(2026, 3, 29) in days
    assert date(2026, 3, 31) in days
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:

        def count(query: str) -> int:
            return warehouse.execute(f"select count(*) from {query}").fetchall()[0][0]

        assert count("core.fct_billed_costs where billed_cost < 0")
        assert count("core.fct_billed_costs where billed_cost <> round(billed_cost, 8)")
        assert count("core.fct_job_days where start_at = end_at")
        assert count("core.fct_cost_allocations where project_id is null and job_key is not null")
        assert count("core.fct_job_days where user_name = 'CORP\\ana' and payer_rule like '%/7001@%'")


# --- the gate closes ---------------------------------------------------------------------------------------

TABLE = Tables(
    {"local.apportion_core.t": {"amount": "numeric", "usage_date": "date"}},
    {"local.apportion_core.t": [(Decimal("1.000000001"), date(2026, 3, 10))]},
)
FROM = "from `local`.`apportion_core`.`t`"


@pytest.mark.parametrize(
    ("on_bigquery", "on_duckdb"),
    [
        ("amount / 3", "amount / 3"),
        ("date_trunc(usage_date, week)", "cast(date_trunc('week', usage_date) as date)"),
        ("cast(amount * amount as numeric)", "cast(cast(amount as double) * amount as decimal(38, 9)) + 0.000000001"),
    ],
)
def test_a_difference_between_the_engines_is_a_problem(on_bigquery: str, on_duckdb: str):
    columns, theirs = answer(f"select {on_bigquery} as value {FROM}", TABLE)
    with duckdb.connect() as connection:
        connection.execute("create table t (amount decimal(38, 9), usage_date date)")
        connection.executemany("insert into t values (?, ?)", TABLE.rows["local.apportion_core.t"])
        ours = connection.execute(f"select {on_duckdb} as value from t").fetchall()
    assert len(list(differences(columns, ours, theirs))) == 1
