"""`apportion ui`, spoken to in GraphQL as the browser does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from typing import Any

from orchestration.dbt import Window
from orchestration.workspace import Workspace
from tests.warehouses import RUN_SECONDS, start

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
        ... on PartitionBackfill {
            status numPartitions error { message } runs(limit: 50) { id status startTime endTime }
        }
    }
}
"""


class WebInterface:
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

    def backfill(self, days: Window) -> dict[str, Any]:
        """Starts a backfill of everything daily and waits for its end."""
        daily = [node["assetKey"] for node in self.ask(PARTITIONED)["assetNodes"] if node["isPartitioned"]]
        launched = self.ask(
            LAUNCH,
            backfill={
                "assetSelection": [{"path": key["path"]} for key in daily],
                "partitionNames": [str(day) for day in days],
            },
        )["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        deadline = time.monotonic() + RUN_SECONDS
        while True:
            backfill = self.ask(PROGRESS, id=launched["backfillId"])["partitionBackfillOrError"]
            if backfill["status"] not in ("REQUESTED", "COMPLETING"):
                return backfill
            assert time.monotonic() < deadline, backfill
            time.sleep(1)

    def end(self) -> None:
        """Ends it with everything that it started: they share its process group."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, sign)
                self.process.wait(timeout=20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
