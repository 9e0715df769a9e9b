"""`apportion status`: what is loaded, what is stale, what is quarantined, does it reconcile."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from orchestration.cli import app
from orchestration.settings import load_sources
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import DEMO, command


def ask(workspace: Workspace) -> str:
    answer = CliRunner().invoke(app, command(workspace, "status")[1:])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_status_tells_what_is_loaded_quarantined_and_stale_and_whether_it_reconciles(demo: Workspace) -> None:
    told = ask(demo)
    for source in load_sources(demo.sources_file, demo.data):
        (line,) = (line.split() for line in told.splitlines() if line.split()[:1] == [source.name])
        assert line[1:4] == [source.kind, str(DEMO.days), "2026-01-03"]
    assert f"{demo.data / 'quarantine'}" in told
    assert "built: 3 days: 2026-01-01 up to 2026-01-04" in told
    assert "stale: none" in told
    assert told.count("difference 0.000000000") == 2 * len(("USD", "CHF"))


@pytest.mark.parametrize("killed_early", [False, True], ids=["nothing was run", "the first run was killed early"])
def test_status_of_a_workspace_without_books_says_what_to_do(tmp_path: Path, killed_early: bool) -> None:
    workspace = make_workspace(tmp_path)
    if killed_early:
        workspace.data.mkdir()
        duckdb.connect(str(workspace.warehouse)).close()
    assert "nothing is built yet → apportion run" in ask(workspace)
