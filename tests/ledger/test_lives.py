"""Random runs, restatements, changes of policy and closes: what a ledger promises holds after each step."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pytest

from orchestration.ledger.book import broken_links, closes
from orchestration.workspace import Workspace
from tests.compiled import compiled
from tests.ledger.books import FIRST, VIEWS, Life, Warehouse, random_day
from tests.warehouses import GOLDEN

COMPANIES = 20
"""With twenty currencies each: four hundred ledgers."""
MONTHS = 3


@pytest.fixture(scope="module")
def warehouse(golden: Workspace) -> Warehouse:
    return Warehouse(compiled(golden, VIEWS, GOLDEN), golden.warehouse)


@pytest.mark.parametrize("quarter", range(4))
def test_closed_lines_never_change_and_with_the_open_ones_they_are_the_books(
    warehouse: Warehouse, quarter: int, tmp_path: Path
) -> None:
    closed = corrected = 0
    for seed in range(quarter, COMPANIES, 4):
        life = Life(warehouse, tmp_path / str(seed), random.Random(seed))
        life.begin()
        for _ in range(life.random.randint(8, 14)):
            if len(closes(life.data)) < MONTHS and life.random.random() < 0.3:
                life.close()
            else:
                cause = life.random.choice(("policy_hash", "bill_hash", "bill_hash", "records_hash"))
                life.run(random_day(life, MONTHS), cause)
            corrected += life.check()
        assert broken_links(life.data) == []
        made = closes(life.data)
        closed += len(made)
    assert closed >= 5, "these lives hardly ever closed"
    assert corrected >= 50, "these lives hardly ever corrected anything"


def test_who_is_not_touched_flips_no_cent(warehouse: Warehouse, tmp_path: Path) -> None:
    """After a close, a change for one team makes lines for that team alone, and no line where the books are equal."""
    life = Life(warehouse, tmp_path, random.Random(1))
    life.begin()
    for number in range(20):
        life.run(FIRST.replace(day=number + 1), "bill_hash")
    life.close()
    assert warehouse.rows("from reporting.rpt_open_invoice_lines") == []
    row = next(row for rows in life.allocations.values() for row in rows if row["team_id"] == "nlp")
    warehouse.con.execute(
        "update core.fct_cost_allocations set amount = amount + 0.000000001 where usage_date = ? and team_id = 'nlp'"
        " and component = ? and currency = ? and amount = ?",
        [row["usage_date"], row["component"], row["currency"], row["amount"]],
    )
    (line,) = warehouse.rows("from reporting.rpt_open_invoice_lines")
    assert (line["team_id"], line["component"], line["allocation_kind"]) == ("nlp", row["component"], "true_up")
    assert line["amount"] == Decimal("0.000000001")
    assert line["invoiced_amount"] == 0


def test_a_month_of_which_days_are_missing_says_nothing_until_they_are_there(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    """A warehouse that is being built anew must not claim that closed months cost nothing."""
    life = Life(warehouse, tmp_path, random.Random(2))
    life.begin()
    for number in range(5):
        life.run(FIRST.replace(day=number + 1), "bill_hash")
    life.close()
    warehouse.con.execute("delete from core.fct_days; delete from core.fct_cost_allocations")
    assert warehouse.rows("from reporting.rpt_open_invoice_lines") == []
