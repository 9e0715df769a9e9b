"""Gate (c): the loaders and the whole dbt build, through the real client and the real adapter, against an emulator.

It proves the plumbing: names, types that arrive, partitions that are replaced, runs that are repeated. Arithmetic is
the evaluator's gate: the emulator keeps three to five decimals of what is cast to NUMERIC and BIGNUMERIC and divides in
binary fractions, so amounts that were divided are only compared to that. What it cannot do is an expected failure here.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console

from orchestration.dbt import build_arguments, invoke
from orchestration.runs import run_pipeline
from orchestration.status import show_status
from orchestration.summary import print_summary
from orchestration.warehouse.settings import client
from orchestration.warehouse.target import receive
from orchestration.workspace import BIGQUERY, PROJECT_ROOT, Workspace
from tests.bigquery.emulator import Emulator
from tests.golden.company import make_workspace
from tests.warehouses import GOLDEN, land_and_build

DATASET = "gate"
NANO = Decimal("0.000000001")
COARSE = Decimal("0.001")
"""The decimals that the emulator keeps, of the amount and of the weights that it was divided by."""
CENTS = {"invoiced_amount", "reporting_amount"}
"""Cut from running sums of such amounts: each end may be a cent off. The evaluator compares them exactly."""
TWO_CENTS = Decimal("0.02")
CONTRACT = "+contract: {enforced: true}"
BILL = "focus_2026-03_20260406T060000Z.csv"
DIFFERS = {"row_hash", "policy_hash"}
"""A NUMERIC as text has trailing zeros in the emulator, and not in GoogleSQL (the evaluator's gate compares these)."""
Row = tuple[Any, ...]


@dataclass(frozen=True)
class WithoutContracts(Workspace):
    """The emulator does not know `create table (columns) as`; types are the analyzer's gate."""

    @cached_property
    def dbt_project(self) -> Path:
        project = super().dbt_project
        settings = project / "dbt_project.yml"
        text = (PROJECT_ROOT / "dbt_project" / "dbt_project.yml").read_text()
        assert CONTRACT in text
        settings.unlink()
        settings.write_text(text.replace(CONTRACT, "+contract: {enforced: false}"))
        return project


@dataclass(frozen=True)
class Both:
    """The golden company on both targets."""

    here: Workspace
    there: Workspace
    emulator: Emulator

    def run(self) -> None:
        """On BigQuery as the command does: landed, loaded, built and checked."""
        land_and_build(self.here, GOLDEN)
        run_pipeline(self.there, GOLDEN)

    def run_again(self) -> None:
        """Without Dagster and the checks, for speed."""
        land_and_build(self.here, GOLDEN)
        receive(self.there, GOLDEN, print)
        assert invoke(self.there, build_arguments(GOLDEN, tests=False)).success

    def tables(self) -> list[tuple[str, str]]:
        with duckdb.connect(str(self.here.warehouse), read_only=True) as warehouse:
            return warehouse.execute(
                "select table_schema, table_name from information_schema.tables"
                " where table_schema in ('staging', 'intermediate', 'core', 'reporting') order by all"
            ).fetchall()

    def rows_here(self, schema: str, table: str) -> tuple[list[str], list[Row]]:
        with duckdb.connect(str(self.here.warehouse), read_only=True) as warehouse:
            found = warehouse.execute(f"select columns(lambda c: c not in {(*DIFFERS,)}) from {schema}.{table}")
            return [column[0] for column in found.description], found.fetchall()

    def rows_there(self, schema: str, table: str, columns: list[str]) -> list[Row]:
        service = client(self.emulator.settings(DATASET))
        listed = ", ".join(f"`{name}`" for name in columns)
        found = service.query(f"select {listed} from `{service.project}`.`{DATASET}_{schema}`.`{table}`").result()
        return [tuple(row.values()) for row in found]

    def differences(self, tolerance: Decimal = COARSE) -> tuple[list[str], int, int]:
        """What differs, and how many tables and rows were compared."""
        problems, count = [], 0
        tables = self.tables()
        for schema, table in tables:
            columns, ours = self.rows_here(schema, table)
            theirs = self.rows_there(schema, table, columns)
            count += len(ours)
            if len(ours) != len(theirs):
                problems.append(f"{table}: {len(ours)} rows on DuckDB, {len(theirs)} on the emulator")
                continue
            for one, two in zip(*(sorted(map(_plain, rows), key=_order) for rows in (ours, theirs)), strict=True):
                unequal = [
                    f"{name} {a!r} {b!r}"
                    for name, a, b in zip(columns, one, two, strict=True)
                    if not _equal(a, b, max(tolerance, TWO_CENTS) if name in CENTS else tolerance)
                ]
                if unequal:
                    problems.append(f"{table}: {', '.join(unequal)}")
                    break
        return problems, len(tables), count


def _plain(row: Row) -> Row:
    return tuple(
        Decimal(value)
        if isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        else value.replace(tzinfo=None)
        if hasattr(value, "tzinfo")
        else value
        for value in row
    )


def _order(row: Row) -> tuple:
    """By all that is no number, then by numbers that are not quite sure of their last digits."""
    texts = tuple(str(value) for value in row if not isinstance(value, Decimal))
    return texts, tuple(round(value, 1) for value in row if isinstance(value, Decimal))


def _equal(one: Any, two: Any, tolerance: Decimal) -> bool:
    if isinstance(one, Decimal) and isinstance(two, Decimal):
        return abs(one - two) <= tolerance * max(1, abs(one))
    return one == two


@pytest.fixture(scope="module")
def both(emulator: Emulator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    settings = emulator.settings(DATASET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APPORTION_BIGQUERY_PROJECT", settings.project)
        patch.setenv("APPORTION_BIGQUERY_DATASET", DATASET)
        patch.setenv("APPORTION_BIGQUERY_ENDPOINT", emulator.endpoint)
        here = make_workspace(tmp_path_factory.mktemp("both"))
        found = Both(here, WithoutContracts(here.sources_file, here.seeds, here.data, target=BIGQUERY), emulator)
        found.run()
        yield found


def test_a_first_run_makes_every_table_with_the_rows_of_duckdb(both: Both, record_property):
    problems, tables, rows = both.differences()
    record_property("gate", f"emulator: {tables} models built, {rows} rows compared, {len(problems)} problems")
    assert problems == []


def test_the_same_day_again_changes_nothing_and_a_restated_one_changes_itself(both: Both):
    before = both.rows_there("core", "fct_cost_allocations", ["usage_date", "team_id", "amount"])
    both.run_again()
    assert sorted(
        both.rows_there("core", "fct_cost_allocations", ["usage_date", "team_id", "amount"]), key=str
    ) == sorted(before, key=str)
    bill = both.here.sources_file.parent / "inbox" / "focus" / BILL
    lines = bill.read_text().splitlines(keepends=True)
    newer = bill.with_name(BILL.replace("20260406", "20260420"))
    newer.write_text("".join([*lines[:2], *lines[3:]]))  # one line is gone
    charges = set(both.rows_there("core", "fct_billed_costs", ["charge_key"]))
    both.run_again()
    assert both.differences()[0] == []
    assert len(set(both.rows_there("core", "fct_billed_costs", ["charge_key"]))) < len(charges)


def test_what_a_run_and_the_status_print_is_read_from_bigquery(both: Both):
    console = Console(file=io.StringIO(), width=200)
    print_summary(both.there, GOLDEN, console)
    show_status(both.there, console)
    said = console.file.getvalue()
    assert "built: 1 days: 2026-03-10" in said
    assert said.count("USD  billed") == 2
    assert "allocated" in said


@pytest.mark.xfail(strict=True, reason="the emulator keeps three decimals of a cast to NUMERIC")
def test_amounts_are_equal_to_a_nano_unit_on_the_emulator(both: Both):
    assert both.differences(NANO)[0] == []


@pytest.mark.xfail(
    strict=True, reason="`create table (columns) as`, which enforces a contract, is unknown to the emulator"
)
def test_contracts_are_enforced_on_the_emulator(both: Both):
    window = {"window_start": str(GOLDEN.start), "window_end": str(GOLDEN.end)}
    # With a data folder of its own, in which the project is parsed with its contracts.
    enforced = replace(both.here, data=both.here.data / "enforced").on(BIGQUERY)
    assert invoke(enforced, ["--quiet", "run", "--select", "fct_days", "--vars", json.dumps(window)]).success
