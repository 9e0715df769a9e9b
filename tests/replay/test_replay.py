"""Equal inputs and policy give equal tables: every table of the star and the reports, every column, bit by bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orchestration import dbt
from orchestration.dbt import Window
from orchestration.workspace import Workspace
from tests.warehouses import DEMO, Tables, copy_of, land_and_build, tables_of

DAYS = [
    Window(DEMO.start + timedelta(days=offset), DEMO.start + timedelta(days=offset + 1)) for offset in range(DEMO.days)
]


@pytest.fixture(scope="module")
def at_once(demo: Workspace) -> Tables:
    return tables_of(demo.warehouse)


def test_a_range_run_twice_gives_the_same_tables(demo: Workspace, at_once: Tables) -> None:
    land_and_build(demo, DEMO)
    assert tables_of(demo.warehouse).differences(at_once) == []


def test_days_run_one_by_one_in_any_order_give_the_same_tables_as_their_range(
    demo: Workspace, at_once: Tables, tmp_path: Path
) -> None:
    fresh = copy_of(demo, tmp_path)
    for place in (2, 0, 1):
        land_and_build(fresh, DAYS[place])
    assert tables_of(fresh.warehouse).differences(at_once) == []
    # Only the last window's folders are named: DuckDB guesses the size of a table from the first file that it may read.
    with duckdb.connect(fresh.warehouse, read_only=True) as con:
        plan = con.execute("explain (format json) select gpu_index from staging.stg_telemetry__gpu_samples").fetchall()
        landed = con.execute("select count(*) from staging.stg_telemetry__gpu_samples").fetchall()[0][0]
    assert landed / 2 < sum(_guessed_rows(json.loads(plan[0][1]))) < landed * 2


def test_a_range_too_large_for_one_build_gives_the_same_tables_in_portions(
    demo: Workspace, at_once: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = copy_of(demo, tmp_path)
    monkeypatch.setattr(dbt, "MOST_TELEMETRY_AT_ONCE", 1)
    land_and_build(fresh, DEMO)
    assert list(dbt.portions(fresh, DEMO)) == DAYS
    assert tables_of(fresh.warehouse).differences(at_once) == []


def test_what_was_published_is_what_was_built(demo: Workspace, at_once: Tables) -> None:
    assert tables_of(demo.published / "marts.duckdb").differences(at_once) == []


def _guessed_rows(steps: list[dict[str, Any]]) -> Iterator[int]:
    """Of each scan of a plan."""
    for step in steps:
        if not step["children"]:
            yield int(step["extra_info"]["Estimated Cardinality"])
        yield from _guessed_rows(step["children"])
