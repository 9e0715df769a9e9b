"""Workspaces beside each other, runs at the same time, and readers of what is published."""

from __future__ import annotations

import struct
import time
from dataclasses import dataclass

import duckdb
import pytest

from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import GOLDEN, Tables, finish, start, tables_of

RUN = ("run", "--from", str(GOLDEN.start), "--to", str(GOLDEN.end))
TOTAL = "select sum(amount) from core.fct_cost_allocations where currency = 'USD'"
FIRST_STORAGE_VERSION_OF_DUCKDB_1_3 = 66


@dataclass
class Busy:
    """Two runs of the golden workspace and one of another workspace, all at the same time, and a reader."""

    other: Workspace
    before: Tables
    totals_read: list[object]
    printed: list[str]


@pytest.fixture(scope="module")
def busy(golden: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Busy:
    other = make_workspace(tmp_path_factory.mktemp("other"))
    (other.seeds / "policy" / "idle_policies.csv").write_text(
        "pool_id,idle_cause,policy,idle_window,valid_from,valid_to,reason\n"
        "*,*,platform,day,2026-01-01,,Here the platform pays for everything idle\n",
        encoding="utf-8",
    )
    published = golden.published / "marts.duckdb"
    seen = Busy(other, tables_of(published), [], [])
    runs = [start(golden, *RUN), start(golden, *RUN), start(other, *RUN)]
    with duckdb.connect(str(published), read_only=True) as held_open:
        while any(process.poll() is None for process in runs):
            with duckdb.connect(str(published), read_only=True) as opened_anew:
                seen.totals_read += [reader.execute(TOTAL).fetchone()[0] for reader in (held_open, opened_anew)]
            time.sleep(0.1)
    seen.printed += [finish(process) for process in runs]
    return seen


def test_runs_of_one_workspace_wait_for_each_other_and_give_the_same_tables(golden: Workspace, busy: Busy) -> None:
    assert tables_of(golden.warehouse).differences(busy.before) == []


def test_a_run_ends_with_who_pays_and_with_books_that_close(busy: Busy) -> None:
    for printed in busy.printed:
        assert all(
            name in printed
            for name in ("Language", "Speech", "Vision", "direct", "idle", "shared", "transfers", "busy")
        )
        assert "USD  allocatable 617.300000000, allocated 617.300000000, difference 0.000000000" in printed
        assert "EUR  allocatable 10.000000000, allocated 10.000000000, difference 0.000000000" in printed


def test_another_workspace_has_its_own_policy_and_its_own_books(busy: Busy) -> None:
    with duckdb.connect(str(busy.other.warehouse), read_only=True) as warehouse:
        idle = warehouse.execute(
            "select distinct team_id from core.fct_cost_allocations where allocation_kind = 'idle'"
        ).fetchall()
        total = warehouse.execute(TOTAL).fetchone()[0]
    assert idle == [("platform",)]
    assert f"{total:f}" == "617.300000000"


def test_what_is_published_can_be_read_while_runs_write(golden: Workspace, busy: Busy) -> None:
    assert len(busy.totals_read) > 20
    assert {f"{total:f}" for total in busy.totals_read} == {"617.300000000"}
    assert tables_of(golden.published / "marts.duckdb").differences(busy.before) == []


def test_duckdb_1_2_can_read_what_is_published(golden: Workspace) -> None:
    header = (golden.published / "marts.duckdb").read_bytes()[:20]
    magic, storage_version = struct.unpack("<8x4sQ", header)
    assert magic == b"DUCK"
    assert storage_version < FIRST_STORAGE_VERSION_OF_DUCKDB_1_3


def test_the_parquet_marts_equal_the_tables(golden: Workspace) -> None:
    tables = tables_of(golden.published / "marts.duckdb").by_name
    files = {file.stem: file for file in (golden.published / "parquet").iterdir()}
    assert files.keys() == tables.keys()
    for name, file in files.items():
        read = duckdb.sql(f"select * from read_parquet('{file}') order by all").to_arrow_table()
        assert read.schema == tables[name].schema, name
        assert read.equals(tables[name]), name


def test_every_published_table_and_column_carries_its_description(golden: Workspace) -> None:
    with duckdb.connect(str(golden.published / "marts.duckdb"), read_only=True) as marts:
        silent = marts.execute(
            """
            select table_name, column_name from duckdb_columns() where coalesce(comment, '') = '' and not internal
            union all
            select table_name, null from duckdb_tables() where coalesce(comment, '') = '' and not internal
            """
        ).fetchall()
    assert silent == []
