"""When things run: the right days, once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from orchestration.dbt import Window
from orchestration.defs.automation import inbox_sensor, nightly, restatements
from orchestration.partitions import window_of
from orchestration.settings import load_sources
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import window

BILL = "inbox/focus/focus_2026-03_20260406T060000Z.csv"


def evaluate(schedule: dg.ScheduleDefinition, at: datetime) -> Window | None:
    tick = schedule.evaluate_tick(dg.build_schedule_context(scheduled_execution_time=at))
    (request,) = tick.run_requests
    return window_of(request.tags)


def test_every_night_runs_the_day_that_ended() -> None:
    assert nightly.cron_schedule == "0 3 * * *"
    assert evaluate(nightly, datetime(2026, 3, 1, 3, tzinfo=UTC)) == window("2026-02-28", "2026-03-01")


def test_every_sunday_runs_the_trailing_days_again() -> None:
    assert restatements.cron_schedule == "0 5 * * 0"
    assert evaluate(restatements, datetime(2026, 3, 1, 5, tzinfo=UTC)) == window("2026-01-25", "2026-03-01")


def test_the_trailing_days_do_not_reach_before_the_first_day_that_can_be_run() -> None:
    assert evaluate(restatements, datetime(2025, 1, 5, 5, tzinfo=UTC)) == window("2025-01-01", "2025-01-05")


class Watched:
    """The sensor of a workspace, asked again and again as the daemon does."""

    def __init__(self, workspace: Workspace) -> None:
        self.root = workspace.sources_file.parent
        self._sensor = inbox_sensor(workspace, load_sources(workspace.sources_file, workspace.data))
        self._cursor: str | None = None

    def requests(self) -> list[Window | None]:
        with dg.DagsterInstance.ephemeral() as instance:
            tick = self._sensor.evaluate_tick(dg.build_sensor_context(instance=instance, cursor=self._cursor))
        self._cursor = tick.cursor
        return [window_of(request.tags) for request in tick.run_requests]


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    """The golden company, whose files have been seen."""
    made = Watched(make_workspace(tmp_path))
    made.requests()
    return made


def reading(watched: Watched, day: str, delivered: str = "") -> None:
    """Drops a file of storage readings of a day into the inbox."""
    (watched.root / f"inbox/storage/usage_{day}{delivered}.csv").write_text(
        f"filesystem,path,owner,group,bytes,date\nscratch,/scratch/nlp,ben,nlp,1024,{day}\n", encoding="utf-8"
    )


def test_a_new_file_is_requested_for_exactly_its_days_and_once(watched: Watched) -> None:
    assert watched.requests() == []
    reading(watched, "2026-03-10", delivered="_20260315T060000Z")
    assert watched.requests() == [window("2026-03-10", "2026-03-11")]
    assert watched.requests() == []


def test_a_restated_day_is_requested_for_the_month_if_it_drops_a_credit_of_the_month(watched: Watched) -> None:
    bill = (watched.root / BILL).read_text(encoding="utf-8").splitlines(keepends=True)
    restated = [line for line in bill if "Virtual Machines" in line]
    (watched.root / "inbox/focus/focus_2026-03-10_2026-03-11_20260410T060000Z.csv").write_text(
        "".join([bill[0], *restated]), encoding="utf-8"
    )
    assert watched.requests() == [window("2026-03-01", "2026-04-01")]


def test_the_first_look_requests_what_no_run_has_landed(golden: Workspace) -> None:
    # Of March, which its bills cover, the golden company has run the tenth.
    assert Watched(golden).requests() == [window("2026-03-01", "2026-03-10"), window("2026-03-11", "2026-04-01")]


def test_files_for_days_that_lie_apart_are_requested_apart(watched: Watched) -> None:
    for day in ("2026-03-02", "2026-03-03", "2026-03-07"):
        reading(watched, day)
    assert watched.requests() == [window("2026-03-02", "2026-03-04"), window("2026-03-07", "2026-03-08")]


def test_a_file_that_is_removed_is_requested_for_the_days_that_it_had(watched: Watched) -> None:
    (watched.root / "inbox/storage/usage_2026-03-10.csv").unlink()
    assert watched.requests() == [window("2026-03-10", "2026-03-11")]


def test_a_file_for_days_that_cannot_be_run_requests_nothing(watched: Watched) -> None:
    for day in ("2019-05-01", "2999-01-01"):
        reading(watched, day)
    assert watched.requests() == []
