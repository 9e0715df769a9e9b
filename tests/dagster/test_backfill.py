"""A week of the daily assets, backfilled from Dagster's web interface as a person would: one run, and it succeeds."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orchestration.workspace import Workspace
from tests.warehouses import RUN_SECONDS, small_demo, start, window

WEEK = window("2026-01-01", "2026-01-08")
PARTITIONED = """{ assetNodes { assetKey { path } isPartitioned } }"""
LAUNCH = """
mutation ($backfill: LaunchBackfillParams!) {
    launchPartitionBackfill(backfillParams: $backfill) {
        __typename
        ... on LaunchBackfillSuccess { backfillId }
        ... on PythonError { message }
    }
}
"""
PROGRESS = """
query ($id: String!) {
    partitionBackfillOrError(backfillId: $id) {
        ... on PartitionBackfill { status numPartitions error { message } runs(limit: 50) { id status } }
    }
}
"""


class WebInterface:
    """`apportion ui`, spoken to in GraphQL."""

    def __init__(self, workspace: Workspace) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}/graphql"
        self.process = start(workspace, "ui", "--port", str(port), output=subprocess.DEVNULL)

    def ask(self, query: str, **variables: Any) -> dict[str, Any]:
        request = urllib.request.Request(
            self._url,
            json.dumps({"query": query, "variables": variables}).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found
        return found["data"]

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + RUN_SECONDS
        while True:
            try:
                if self.ask(PARTITIONED)["assetNodes"]:
                    return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                assert self.process.poll() is None, "the web interface ended"
                assert time.monotonic() < deadline, "the web interface does not answer"
            time.sleep(0.5)

    def end(self) -> None:
        """Ends it with everything that it started: they share its process group."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(timeout=20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


@pytest.fixture
def week(tmp_path: Path) -> Workspace:
    return small_demo(tmp_path, WEEK)


@pytest.fixture
def interface(week: Workspace) -> Iterator[WebInterface]:
    interface = WebInterface(week)
    try:
        interface.wait_until_it_answers()
        yield interface
    finally:
        interface.end()


def test_a_backfill_of_a_week_is_one_run_and_succeeds(interface: WebInterface, week: Workspace) -> None:
    daily = [node["assetKey"] for node in interface.ask(PARTITIONED)["assetNodes"] if node["isPartitioned"]]
    days = [str(WEEK.start + timedelta(days=offset)) for offset in range(WEEK.days)]
    launched = interface.ask(
        LAUNCH,
        backfill={"assetSelection": [{"path": key["path"]} for key in daily], "partitionNames": days},
    )["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched

    deadline = time.monotonic() + RUN_SECONDS
    while True:
        backfill = interface.ask(PROGRESS, id=launched["backfillId"])["partitionBackfillOrError"]
        if backfill["status"] not in ("REQUESTED", "COMPLETING"):
            break
        assert time.monotonic() < deadline, backfill
        time.sleep(1)
    assert [run["status"] for run in backfill["runs"]] == ["SUCCESS"], backfill
    assert backfill["status"] == "COMPLETED_SUCCESS", backfill

    with duckdb.connect(str(week.warehouse), read_only=True) as warehouse:
        built = warehouse.execute(
            "select count(distinct usage_date), sum(amount) from core.fct_cost_allocations"
        ).fetchone()
        billed = warehouse.execute("select sum(allocatable_cost) from core.fct_billed_costs").fetchone()
    assert built == (WEEK.days, *billed)
