"""The queries of docs/bi.md run as they are written there, on both engines' SQL, and say what the books say."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from orchestration.workspace import PROJECT_ROOT, Workspace
from tests.bigquery.google import Tables, output_columns

PAGE = (PROJECT_ROOT / "docs" / "bi.md").read_text(encoding="utf-8")
QUERIES = {int(number): sql for number, sql in re.findall(r"^### (\d+)\. .*?\n```sql\n(.*?)```", PAGE, re.M | re.S)}
MAY_BE_EMPTY: dict[int, set[str]] = {
    1: {"cost_change"},  # of the first month
    2: {"user_name", "job_name"},
    4: {"busy_share"},
    5: {"cost_per_gpu_hour"},
}
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def answers(demo: Workspace) -> dict[int, Rows]:
    with duckdb.connect(str(demo.published / "marts.duckdb"), read_only=True) as marts:

        def answer(sql: str) -> Rows:
            found = marts.execute(sql)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

        return {number: answer(sql) for number, sql in QUERIES.items()}


def allocated(demo: Workspace, where: str = "true") -> dict[tuple[str, ...], Decimal]:
    with duckdb.connect(str(demo.published / "marts.duckdb"), read_only=True) as marts:
        rows = marts.execute(
            f"select team_id, currency, sum(amount) from core.fct_cost_allocations where {where} group by all"
        ).fetchall()
    return {(team, currency): amount for team, currency, amount in rows}


def by_currency(rows: Rows, column: str) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for row in rows:
        sums[row["currency"]] += row[column]
    return {currency: amount for currency, amount in sums.items() if amount}


def summed(costs: dict[tuple[str, ...], Decimal]) -> dict[str, Decimal]:
    return by_currency([{"currency": currency, "amount": amount} for (_, currency), amount in costs.items()], "amount")


def test_there_are_ten():
    assert sorted(QUERIES) == list(range(1, 11))


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_every_query_answers_and_fills_its_columns(answers: dict[int, Rows], number: int):
    rows = answers[number]
    assert rows
    for column in rows[0].keys() - MAY_BE_EMPTY.get(number, set()):
        assert any(row[column] is not None for row in rows), column


def test_they_say_what_the_books_say(demo: Workspace, answers: dict[int, Rows]):
    everything = summed(allocated(demo))
    idle = summed(allocated(demo, "allocation_kind = 'idle'"))
    assert by_currency(answers[1], "cost") == everything
    assert by_currency(answers[7], "january_cost") == everything
    assert by_currency(answers[8], "cost") == idle
    assert by_currency(answers[9], "cost") == summed(allocated(demo, "team_id = 'unattributed'"))
    shares: dict[str, Any] = defaultdict(float)
    for row in answers[8]:
        shares[row["currency"]] += float(row["share_of_idle"])
    assert all(abs(share - 1) < 1e-9 for share in shares.values())


def test_each_invoice_ties(answers: dict[int, Rows]):
    assert all(row["ties"] for row in answers[6])


def test_the_costliest_jobs_come_first(answers: dict[int, Rows]):
    costs = [row["cost"] for row in answers[2]]
    assert len(costs) == 20
    assert costs == sorted(costs, reverse=True)
    assert all(row["wasted_cost"] >= 0 for row in answers[2])


def test_nothing_is_closed_yet_and_the_open_month_is_what_was_allocated(demo: Workspace, answers: dict[int, Rows]):
    """In cents, which are cut so that they add up."""
    assert {row["status"] for row in answers[10]} == {"open"}
    for currency, amount in summed(allocated(demo)).items():
        assert abs(by_currency(answers[10], "invoiced_amount")[currency] - amount) < Decimal("0.01")


@pytest.mark.parametrize("number", sorted(QUERIES))
def test_every_query_is_googlesql(manifest: dict[str, Any], number: int):
    tables = Tables(
        {
            f"local.apportion_{node['config']['schema']}.{node['name']}": {
                name: column["data_type"].split("(")[0] for name, column in node["columns"].items()
            }
            for node in manifest["nodes"].values()
            if node["resource_type"] == "model" and node["contract"]["enforced"]
        }
    )
    sql = re.sub(r"\b(core|reporting)\.(\w+)", r"`local`.`apportion_\1`.`\2`", QUERIES[number])
    assert output_columns(sql, tables)
