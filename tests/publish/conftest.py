"""A company that has closed a month, for everything that is made of closed months."""

from __future__ import annotations

import shutil
from datetime import date

import pytest

from orchestration.ledger.close import close_month
from orchestration.publish.marts import publish
from orchestration.workspace import Workspace

CLOSED = date(2026, 3, 1)


@pytest.fixture(scope="session")
def closed(golden: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The golden company with its month closed and published. Tests that change something take a copy."""
    root = tmp_path_factory.mktemp("closed")
    shutil.copytree(golden.seeds, root / "seeds")
    shutil.copytree(
        golden.data, root / "data", ignore=shutil.ignore_patterns("dagster", "dbt"), copy_function=shutil.copy2
    )
    shutil.copy(golden.sources_file, root / "sources.yml")
    workspace = Workspace(root / "sources.yml", root / "seeds", root / "data")
    close_month(workspace, CLOSED, override="Only one day of it is built", by="finance")
    with workspace.writing():
        publish(workspace)
    return workspace
