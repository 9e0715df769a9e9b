"""A week of the daily assets, backfilled from Dagster's web interface as a person would: one run, and it succeeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from orchestration.workspace import Workspace
from tests.dagster.web_interface import WebInterface
from tests.warehouses import small_demo, window

WEEK = window("2026-01-01", "2026-01-08")


@pytest.fixture
def week(tmp_path: Path) -> Workspace:
    return small_demo(tmp_path, WEEK)


@pytest.fixture
def interface(week: Workspace) -> Iterator[WebInterface]:
    interface = WebInterface(week)
    try:
        interface.wait_until_it_answers()
        yield interface
    finally:
        interface.end()


def test_a_backfill_of_a_week_is_one_run_and_succeeds(interface: WebInterface, week: Workspace) -> None:
    backfill = interface.backfill(WEEK)
    assert [run["status"] for run in backfill["runs"]] == ["SUCCESS"], backfill
    assert backfill["status"] == "COMPLETED_SUCCESS", backfill

    with duckdb.connect(str(week.warehouse), read_only=True) as warehouse:
        built = warehouse.execute(
            "select count(distinct usage_date), sum(amount) from core.fct_cost_allocations"
        ).fetchone()
        billed = warehouse.execute("select sum(allocatable_cost) from core.fct_billed_costs").fetchone()
    assert built == (WEEK.days, *billed)
