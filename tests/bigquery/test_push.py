"""The whole landed history in BigQuery: pushed once, whatever happens on the way, and proved equal."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from uuid import uuid4

import pytest

from orchestration.errors import ApportionError
from orchestration.landing.days import forget_undeclared
from orchestration.landing.schemas import WHOLE_TABLES
from orchestration.warehouse import bigquery
from orchestration.warehouse.bigquery import load_days
from orchestration.warehouse.push import push
from orchestration.warehouse.settings import BigQuerySettings, client
from orchestration.warehouse.tables import LANDINGS, SCHEMAS
from orchestration.workspace import Workspace
from tests.bigquery.emulator import Emulator
from tests.bigquery.landed import DAY, DAYS, differing, land_company, small_copy


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return land_company(tmp_path_factory.mktemp("company"))


@pytest.fixture
def workspace(company: Workspace, tmp_path: Path) -> Workspace:
    return small_copy(company, tmp_path / "company")


@pytest.fixture
def settings(emulator: Emulator) -> BigQuerySettings:
    return emulator.settings(f"push_{uuid4().hex[:8]}")


def test_the_whole_history_is_pushed_once_and_every_day_of_it_verified(company, settings):
    first = push(company.data, settings)
    assert (first.days, first.loaded, first.skipped) == (DAYS, DAYS, [])
    assert first.tables == [*SCHEMAS]
    assert first.rows["gpu_samples"] == 180
    assert first.verified >= len(DAYS) * (len(SCHEMAS) - len(WHOLE_TABLES))
    assert differing(company, settings, DAYS, ["charges", "jobs"]) == []
    again = push(company.data, settings)
    assert (again.loaded, again.skipped, again.rows) == ([], DAYS, first.rows)


def test_a_push_that_was_interrupted_goes_on_where_it_was(workspace, settings, monkeypatch):
    replaced: list[date] = []
    replace = bigquery._replace_days

    def interrupted(load, changed, known):
        if len(replaced) == 1 and not known:
            monkeypatch.setattr(bigquery, "_replace_days", remembering)
            raise KeyboardInterrupt
        remembering(load, changed, known)

    def remembering(load, changed, known):
        replace(load, changed, known)
        replaced.extend(changed)

    monkeypatch.setattr(bigquery, "CHUNK_DAYS", 1)
    monkeypatch.setattr(bigquery, "_replace_days", interrupted)
    with pytest.raises(KeyboardInterrupt):
        push(workspace.data, settings)
    report = push(workspace.data, settings)
    assert replaced == DAYS
    assert (report.loaded, report.skipped) == (DAYS[1:], DAYS[:1])


def test_rows_that_somebody_changed_are_found(workspace, settings):
    load_days(workspace.data, DAYS, settings)
    for statement in (
        f"update `{settings.landing}.storage_usage` set stored_bytes = stored_bytes + 1 where account = 'nlp'",
        f"update `{settings.landing}.node_inventory` set pool_id = 'mine' where `date` = '{DAYS[0]}'",
        f"delete from `{settings.landing}.node_inventory` where `date` = '{DAYS[1]}'",
    ):
        client(settings).query(statement).result()
    with pytest.raises(ApportionError) as refused:
        push(workspace.data, settings)
    assert refused.value.message == (
        f"{settings.landing} does not hold what is landed: storage_usage of {DAY}: other values of stored_bytes;"
        f" node_inventory of {DAYS[0]}: other values of pool_id; node_inventory of {DAYS[1]}: 4 rows here, 0 there"
    )
    assert f"delete these days from {settings.landing}.{LANDINGS}" in refused.value.remedy


def test_days_that_were_never_landed_here_are_told_and_left_alone(workspace, settings):
    load_days(workspace.data, DAYS, settings)
    for file in (workspace.data / "landing").glob(f"*/date={DAYS[0]}/*.parquet"):
        file.unlink()
    assert push(workspace.data, settings).only_there == [DAYS[0]]


def test_an_empty_landing_is_refused(workspace, settings):
    forget_undeclared(workspace.data, [])
    with pytest.raises(ApportionError, match="nothing is landed in"):
        push(workspace.data, settings)
