"""A day worked out by hand (README.md here), from raw files to `fct_cost_allocations`, to the last decimal."""

from __future__ import annotations

import csv
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb

from orchestration.workspace import Workspace

PAYER = ("pool_id", "component", "currency", "team_id", "project_id", "user_name", "job", "allocation_kind")
KEY = (*PAYER, "idle_cause")


def rows(workspace: Workspace, sql: str) -> list[tuple]:
    with duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        return warehouse.execute(sql).fetchall()


def written() -> dict[tuple, Decimal]:
    with (Path(__file__).parent / "expected.csv").open(encoding="utf-8") as lines:
        return {
            tuple(line[column] or None for column in KEY): Decimal(line["amount"]) for line in csv.DictReader(lines)
        }


def test_every_row_of_the_golden_day_is_what_was_worked_out_by_hand(golden: Workspace) -> None:
    found = rows(
        golden,
        """
        select
            pool_id, component, currency, team_id, project_id, user_name,
            string_split(job_key, ':')[2] as job, allocation_kind, idle_cause, amount
        from core.fct_cost_allocations
        """,
    )
    assert {tuple(row[:-1]): row[-1] for row in found} == written()
    assert len(found) == len(written())


def test_every_component_is_on_the_golden_day() -> None:
    components = {key[1] for key in written()}
    assert components == {"gpu", "cpu", "memory", "storage", "network", "license", "energy", "support", "other"}


def test_the_golden_hours_are_used_or_idle_for_the_causes_that_happened(golden: Workspace) -> None:
    found = rows(
        golden,
        """
        select
            hour(hour_at), cost, used_hours, down_hours, reserved_hours, stranded_hours, unscheduled_hours, rate
        from core.fct_pool_hours where pool_id = 'gpu-owned' and component = 'gpu' order by 1
        """,
    )
    # hours: cost of the hour; GPU-hours used, down, reserved, stranded, unscheduled; price of a GPU-hour
    blocks = {
        range(0, 3): (16, 4, 0, 0, 0, 4, 2),
        range(3, 6): (16, 6, 0, 0, 2, 0, 2),
        range(6, 9): (16, 2, 0, 0, 2, 4, 2),
        range(9, 12): (16, 0, 0, 0, 0, 8, 2),
        range(12, 18): (16, 8, 0, 0, 0, 0, 2),
        range(18, 21): (16, 2, 0, 4, 2, 0, 2),
        range(21, 24): (16, 2, 4, 0, 2, 0, 2),
    }
    assert found == [(hour, *numbers) for hours, numbers in blocks.items() for hour in hours]


def test_the_books_of_the_golden_day_tie_to_its_bills(golden: Workspace) -> None:
    allocated: Counter[str] = Counter()
    for key, amount in written().items():
        allocated[key[2]] += amount
    assert allocated == {"USD": Decimal("617.30"), "EUR": Decimal(10)}
    billed = rows(golden, "select currency, sum(allocatable_cost) from core.fct_billed_costs group by currency")
    assert dict(billed) == allocated
    differences = rows(
        golden, "select distinct allocated_difference, billed_difference from reporting.rpt_reconciliation"
    )
    assert differences == [(0, 0)]
