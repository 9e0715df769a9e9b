"""A run that is killed leaves nothing behind that blocks or falsifies the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from orchestration.defs.raw import WAREHOUSE_POOL
from orchestration.runs import instance_of
from orchestration.workspace import Workspace
from tests.warehouses import DEMO, RUN_SECONDS, copy_of, run, start, tables_of

RUN = ("run", "--from", str(DEMO.start), "--to", str(DEMO.end))


def kill_when(process: subprocess.Popen[str], sign: Callable[[], bool]) -> None:
    """SIGKILL to the run and everything that it started, as soon as the sign is there."""
    deadline = time.monotonic() + RUN_SECONDS
    try:
        while not sign():
            assert process.poll() is None, f"ended before the sign: {process.communicate()[0]}"
            assert time.monotonic() < deadline, "the sign never came"
            time.sleep(0.005)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def landed(workspace: Workspace, source: str) -> Callable[[], bool]:
    """The source is being landed: a day of it is there and the last one is not."""
    first, last = (workspace.data / "landing" / "landings" / f"date=2026-01-0{day}" for day in (1, 3))
    return lambda: (first / f"{source}.parquet").exists() and not (last / f"{source}.parquet").exists()


def began(workspace: Workspace, model: str) -> Callable[[], bool]:
    """dbt has begun to run the model since now: that is when it writes down what it runs."""
    now = time.time()

    def sign() -> bool:
        written = workspace.dbt_target.glob(f"run/**/{model}.sql")
        return any(path.stat().st_mtime > now for path in written)

    return sign


def leftovers(data: Path) -> list[Path]:
    """Half-written files and spilled memory."""
    signs = ("*.tmp-*", "_spill-*", "spill-*", "status-*", "*.wal")
    made = [data / name for name in ("landing", "quarantine", "published", "dbt")]
    found = [path for folder in made for sign in signs for path in folder.rglob(sign)]
    return found + [path for sign in signs for path in data.glob(sign)]


@pytest.fixture(scope="module")
def survivor(demo: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace whose first three runs were killed: while landing, between models, and while facts were replaced."""
    workspace = copy_of(demo, tmp_path_factory.mktemp("killed"))
    kill_when(start(workspace, *RUN), landed(workspace, "cirrus_gpus"))
    kill_when(start(workspace, *RUN), began(workspace, "int_drivers"))
    kill_when(start(workspace, *RUN), began(workspace, "fct_cost_allocations"))
    return workspace


def test_the_run_after_killed_runs_gives_the_tables_of_an_undisturbed_one(demo: Workspace, survivor: Workspace) -> None:
    run(survivor, DEMO)
    undisturbed = tables_of(demo.warehouse)
    assert tables_of(survivor.warehouse).differences(undisturbed) == []
    assert tables_of(survivor.published / "marts.duckdb").differences(undisturbed) == []


def test_nothing_half_written_is_left_after_that_run(survivor: Workspace) -> None:
    assert leftovers(survivor.data) == []


def test_killed_runs_are_reported_as_failed_and_hold_no_slot(survivor: Workspace) -> None:
    with instance_of(survivor) as instance:
        statuses = [record.dagster_run.status for record in instance.get_run_records()]
        slots = instance.event_log_storage.get_concurrency_info(WAREHOUSE_POOL)
    assert statuses == [dg.DagsterRunStatus.SUCCESS, *[dg.DagsterRunStatus.FAILURE] * 3]
    assert not slots.claimed_slots
    assert not slots.pending_steps
