"""The benchmark's hand-written scripts and the models say the same of the same company: amounts, payers and use.

They share no code with the models, and were written for one policy alone: where they agree to the last digit, the
models' generality costs nothing but time, and what is measured against each other is the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import duckdb
import pytest

from orchestration import dbt
from orchestration.dbt import Window
from orchestration.landing.loader import land
from orchestration.settings import load_sources
from orchestration.workspace import Workspace
from tests.bench import peer_duckdb, peer_pandas, peer_polars
from tests.bench.world import World, write_world

DAYS = Window(date(2026, 1, 1), date(2026, 1, 3))
KEYS = "usage_date, pool_id, component, team_id, allocation_kind"


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = write_world(
        World(gpus=80, days=DAYS.days, interval=300, jobs=1_500, lines=4_000, teams=7), tmp_path_factory.mktemp("world")
    )
    for source in load_sources(workspace.sources_file, workspace.data):
        land(source, DAYS.start, DAYS.end, workspace.data)
    dbt.build(workspace, DAYS, tests=False)
    return workspace


@pytest.fixture
def books(company: Workspace) -> duckdb.DuckDBPyConnection:
    books = duckdb.connect(str(company.warehouse), read_only=True)
    books.execute(
        f"""
        create temp view ours as
        select {KEYS}, job_key, sum(amount) as amount
        from (
            select * replace (replace(allocation_kind, 'shared', 'overhead') as allocation_kind)
            from core.fct_cost_allocations
        )
        group by all having sum(amount) <> 0
        """
    )
    return books


def result(run: Callable[..., None], company: Workspace, folder: Path) -> str:
    run(company.data, company.seeds, folder, list(DAYS))
    """What a script charges to anybody; it may say of somebody that he pays nothing."""
    return f"(from read_parquet('{folder}/allocations/*.parquet') where abs(amount) >= 1e-9)"


def test_the_exact_script_charges_every_job_the_same_to_the_last_digit(
    company: Workspace, books: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    theirs = (
        f"select {KEYS}, job_key, sum(amount) as amount from {result(peer_duckdb.run, company, tmp_path)} group by all"
    )
    assert books.execute(f"({theirs}) except all from ours").fetchall() == []
    assert books.execute(f"from ours except all ({theirs})").fetchall() == []
    billed, charged = books.execute(
        f"select (select sum(effective_cost) from core.fct_billed_costs), (select sum(amount) from ({theirs}))"
    ).fetchall()[0]
    assert billed == charged > 0


@pytest.mark.parametrize("peer", [peer_polars, peer_pandas])
def test_scripts_in_floating_point_charge_nearly_the_same(
    company: Workspace, books: duckdb.DuckDBPyConnection, tmp_path: Path, peer: object
) -> None:
    theirs = result(peer.run, company, tmp_path)  # type: ignore[attr-defined]
    compared = books.execute(
        f"""
        select max(abs(a.amount - b.amount)), count(*), count(a.amount), count(b.amount)
        from (select {KEYS}, sum(amount)::double as amount from ours group by all) as a
        full join (select {KEYS}, sum(amount)::double as amount from {theirs} group by all) as b using ({KEYS})
        """
    ).fetchall()
    ((apart, rows, ours, others),) = compared
    assert rows == ours == others > 0
    assert apart < 1e-6
