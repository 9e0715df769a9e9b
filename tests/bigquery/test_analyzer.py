"""Gate (a): Google's analyzer takes every model and every test, and their types are those of the contracts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from orchestration.workspace import Workspace
from tests.bigquery.gates import Outcome, analyse, lint
from tests.bigquery.google import Tables, output_columns
from tests.bigquery.project import Project, compiled
from tests.warehouses import GOLDEN


@pytest.fixture(scope="module")
def statements(project: Workspace) -> Project:
    return compiled(project, GOLDEN)


@pytest.fixture(scope="module")
def analysed(statements: Project) -> tuple[Outcome, Tables]:
    return analyse(statements)


def test_every_model_and_test_is_googlesql_with_the_types_of_its_contract(statements, analysed, record_property):
    outcome, _ = analysed
    record_property("gate", f"analyzer: {outcome}")
    assert outcome.problems == []
    assert outcome.statements == len(statements.nodes) == len(statements.models) + len(statements.tests)


def test_nothing_is_left_out(statements: Project, manifest: dict[str, Any]):
    expected = {one["name"] for one in manifest["nodes"].values() if one["resource_type"] in ("model", "test")}
    assert {node.name for node in statements.nodes} == expected
    assert all(model.contract for model in statements.models if model.layer in ("core", "reporting"))


def test_what_if_models_are_googlesql_too(project, statements, analysed):
    """They read the same models, in another schema."""
    what_if = compiled(project, GOLDEN, scenario="everything-direct")
    types = {model.name: analysed[1].columns[model.relation] for model in statements.models}
    books = {"local.core.fct_cost_allocations": types["fct_cost_allocations"]}
    known = {model.relation: types[model.name] for model in what_if.models if model.name in types}
    new = [node for node in what_if.nodes if node.kind == "model" and node.name not in types]
    outcome, _ = analyse(replace(what_if, nodes=new, given=what_if.given | known | books))
    assert (outcome.models, outcome.problems) == (2, [])


# --- the gate closes ---------------------------------------------------------------------------------------

TABLE = Tables({"local.apportion_core.t": {"amount": "numeric", "usage_date": "date"}})
FROM = "from `local`.`apportion_core`.`t`"


@pytest.mark.parametrize(
    "query",
    [
        f"select sum(amount) filter (where amount > 0) as amount {FROM}",
        f"select amount::numeric as amount {FROM}",
        f"select date_trunc('month', usage_date) as usage_date {FROM}",
        f"select * exclude (amount) {FROM}",
        f"select cast(amount as varchar) as amount {FROM}",
        f"select amount {FROM} where usage_date = timestamp '2026-01-01'",
    ],
)
def test_the_dialect_of_duckdb_is_refused(query: str):
    with pytest.raises(Exception, match="INVALID_ARGUMENT"):
        output_columns(query, TABLE)


@pytest.mark.parametrize(
    ("query", "word"),
    [
        (f"select amount / 3 as amount {FROM}", "division"),
        (f"select avg(amount) as amount {FROM}", "mean"),
        (f"select date_trunc(usage_date, week) as usage_date {FROM}", "isoweek"),
        (f"select t.amount {FROM} as t asof join {FROM.removeprefix('from ')} as u on true", "asof"),
    ],
)
def test_what_the_analyzer_lets_through_is_linted(query: str, word: str):
    assert len(lint(query)) == 1
    assert re.search(word, lint(query)[0])


def test_another_type_than_the_contract_is_a_problem(statements: Project):
    path = ("stg_reference__components", "int_components", "dim_components")
    nodes = [node for node in statements.nodes if node.name in path]
    broken = nodes[-1].sql.replace("cost_grain", "cast(null as int64) as cost_grain", 1)
    outcome, _ = analyse(replace(statements, nodes=[*nodes[:-1], replace(nodes[-1], sql=broken)]))
    (problem,) = outcome.problems
    assert "dim_components: its contract says" in problem
