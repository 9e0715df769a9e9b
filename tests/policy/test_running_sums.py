"""Running sums go through the rows in their order, whatever DuckDB is told of threads, order and memory."""

from __future__ import annotations

from itertools import groupby

import duckdb
import pytest

from orchestration.workspace import Workspace
from tests.compiled import compiled
from tests.warehouses import GOLDEN

JOBS = 400_000
"""Several row groups, and more than fits into the memory below."""


@pytest.mark.parametrize("threads", [1, 4])
def test_each_row_has_the_sum_of_those_before_it(golden: Workspace, threads: int) -> None:
    sql = compiled(golden, ["int_job_pool_days"], GOLDEN)["int_job_pool_days"]
    with duckdb.connect() as connection:
        connection.execute(
            f"""
            set threads = {threads}; set preserve_insertion_order = false; set memory_limit = '150MB';
            attach '{golden.warehouse}' as built (read_only); attach ':memory:' as warehouse; use warehouse;
            create schema intermediate;
            create table intermediate.int_job_pool_hours as from built.intermediate.int_job_pool_hours limit 0;
            insert into intermediate.int_job_pool_hours by name
            select
                date '{GOLDEN.start}' + cast(number % 2 as integer) as usage_date,
                'pool' || number * 7919 % 5 as pool_id,
                number as job_number,
                number % 11 - 1 as gpu_weight,
                number * 1_000_003 as cpu_weight,
                1 as memory_weight
            from range({JOBS}) as numbers(number)
            order by hash(number)
            """
        )
        columns = ["gpu_weight", "cpu_weight", "memory_weight"]
        sums = [f"{column.removesuffix('weight')}{kind}_weight" for kind in ("running", "total") for column in columns]
        found = ", ".join(["usage_date", "pool_id", *columns, *sums])
        rows = connection.execute(f"select {found} from ({sql}) order by usage_date, pool_id, job_number").fetchall()

    assert len(rows) == JOBS
    for _, group in groupby(rows, key=lambda row: row[:2]):
        expected = [0, 0, 0]
        for row in (members := list(group)):
            expected = [before + max(weight, 0) for before, weight in zip(expected, row[2:5], strict=True)]
            assert list(row[5:8]) == expected
        assert all(list(row[8:]) == expected for row in members)
