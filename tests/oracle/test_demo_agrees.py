"""The demo company, from raw files through connectors and landing, against the oracle: real shapes, not random ones."""

from __future__ import annotations

from datetime import timedelta

import duckdb
import pyarrow.parquet as pq
import pytest

from orchestration.landing.schemas import TABLES
from orchestration.workspace import Workspace
from tests.warehouses import DEMO

from .compare import compare
from .oracle import calculate

Rows = list[dict]


def rows(warehouse: duckdb.DuckDBPyConnection, sql: str) -> Rows:
    cursor = warehouse.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


@pytest.mark.parametrize("offset", range(DEMO.days))
def test_a_day_of_the_demo_is_what_the_oracle_says(demo: Workspace, offset: int) -> None:
    day = DEMO.start + timedelta(days=offset)
    landed = {
        table: [
            row
            for file in sorted((demo.data / "landing" / table / f"date={day}").glob("*.parquet"))
            for row in pq.read_table(file, partitioning=None).to_pylist()
        ]
        for table in TABLES
    }
    with duckdb.connect(str(demo.warehouse), read_only=True) as warehouse:
        seeds = {
            name: rows(warehouse, f"from seeds.{name}")
            for (name,) in warehouse.execute(
                "select table_name from information_schema.tables where table_schema = 'seeds'"
            ).fetchall()
        }
        built = {
            fact: rows(warehouse, f"from core.{fact} where usage_date = date '{day}'")
            for fact in ("fct_cost_allocations", "fct_pool_hours", "fct_billed_costs")
        }
    books = calculate(landed, seeds, day)
    assert len(books.allocations) > 1_000
    assert compare(books, built) == []
