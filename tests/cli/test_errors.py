"""A mistake that its maker can mend is answered in one message with a remedy, never with a traceback."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestration.cli import app
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import RUN_SECONDS, command

RUN = ("run", "--from", "2026-03-10", "--to", "2026-03-11")
DUMP = "inbox/slurm/sacct_2026-03-10_20260311T001500Z.psv"


def change(workspace: Workspace, name: str, old: str, new: str) -> None:
    path = workspace.sources_file.parent / name
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def unknown_kind(workspace: Workspace) -> None:
    change(workspace, "sources.yml", "kind: slurm", "kind: slrum")


def no_file(workspace: Workspace) -> None:
    for path in (workspace.sources_file.parent / "inbox" / "focus").iterdir():
        path.unlink()


def bad_rows(workspace: Workspace) -> None:
    change(workspace, DUMP, "gres/gpu=4,mem=128G", "gres/gpu=four,mem=128G")


def no_sources(workspace: Workspace) -> None:
    workspace.sources_file.unlink()


def no_seeds(workspace: Workspace) -> None:
    workspace.seeds.rename(workspace.seeds.with_name("elsewhere"))


def nothing(workspace: Workspace) -> None:
    pass


@pytest.mark.parametrize(
    ("mistake", "arguments", "message", "remedy"),
    [
        (no_sources, RUN, "[/old] files/sources.yml: there is no sources file", "--sources / APPORTION_SOURCES"),
        (unknown_kind, RUN, "source 'hal', field 'kind': 'slrum' is not a kind; did you mean 'slurm'?", "correct"),
        (no_seeds, RUN, "the seeds folder", "point --seeds (or APPORTION_SEEDS)"),
        (no_file, RUN, "source 'cloud': no file matches", "put the files there"),
        (nothing, (*RUN[:-1], "2026-03-10"), "2026-03-10 to 2026-03-10 holds no day", "the end is exclusive"),
        (nothing, ("publish",), "there is nothing to publish yet", "apportion run"),
    ],
    ids=["no sources file", "unknown kind", "no seeds", "no file", "empty window", "nothing to publish"],
)
def test_a_mistake_is_answered_with_its_remedy(
    tmp_path: Path, mistake: Callable[[Workspace], None], arguments: tuple[str, ...], message: str, remedy: str
) -> None:
    # Brackets are markup to the console: what a message quotes must come out as it is.
    workspace = make_workspace(tmp_path / "[/old] files")
    mistake(workspace)
    answer = CliRunner().invoke(app, command(workspace, *arguments)[1:])
    assert answer.exit_code == 1, answer.output
    assert answer.output.startswith("✗")
    assert message in answer.output
    assert remedy in answer.output.partition("→")[2]
    assert "Traceback" not in answer.output


def test_too_many_bad_rows_stop_the_run_and_say_where_to_look(tmp_path: Path) -> None:
    """In a process of its own: nothing that Dagster or dbt print of a failure reaches the terminal either."""
    workspace = make_workspace(tmp_path)
    bad_rows(workspace)
    done = subprocess.run(command(workspace, *RUN), capture_output=True, text=True, timeout=RUN_SECONDS)
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.startswith("✗ source 'hal': 1 of 11 rows cannot be read")
    assert "sacct_2026-03-10_20260311T001500Z.psv" in done.stdout
    assert "quarantine/hal" in done.stdout.partition("→")[2]
    assert not workspace.warehouse.exists()


def test_a_day_that_is_no_date_is_a_usage_error(tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["--data", str(tmp_path), "run", "--from", "10.3.2026", "--to", "2026-03-11"])
    assert answer.exit_code == 2
    assert "10.3.2026" in answer.output


@pytest.mark.parametrize("name", ["demo", "run", "status", "publish", "ui", "docs"])
def test_every_command_explains_itself(name: str) -> None:
    answer = CliRunner().invoke(app, [name, "--help"])
    assert answer.exit_code == 0
    assert "Usage:" in answer.output
