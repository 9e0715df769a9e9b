"""What several rooms of the test house share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration import dbt
from orchestration.runs import run_pipeline
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import DEMO, GOLDEN, run, small_demo


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How much each gate of the BigQuery target has covered (see tests/bigquery/)."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    gates = sorted({value for report in reports for name, value in report.user_properties if name == "gate"})
    if gates:
        terminalreporter.section("BigQuery gates")
        for gate in gates:
            terminalreporter.line(gate)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The project's own sources and seeds with an empty data folder; its dbt project is parsed once in it."""
    return Workspace.locate(data=tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def manifest(project: Workspace) -> dict[str, Any]:
    """The parsed dbt project, as `manifest.json` tells it. Parsed once: it takes seconds and needs no warehouse."""
    return json.loads(dbt.prepare(project).read_text())


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The golden company, its day run once by the installed command: landed, built, checked and published."""
    workspace = make_workspace(tmp_path_factory.mktemp("golden"))
    run(workspace, GOLDEN)
    return workspace


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The first days of the demo company, run once over the whole range: what every other way of running must equal."""
    workspace = small_demo(tmp_path_factory.mktemp("demo"), DEMO)
    run_pipeline(workspace, DEMO)
    return workspace
