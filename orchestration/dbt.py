"""Running dbt inside this process, warm: one call per window of days (several for a long one of a large cluster), with
the parsed project kept on disk.

A cold `dbt` spends six seconds importing and parsing before it does anything; here the parsed manifest is kept
beside the workspace and read back in half a second, until a file of the project changes.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from orchestration.errors import ApportionError
from orchestration.landing.days import ensure_schema_files, is_alive, landed_bytes
from orchestration.seeds import SHOWN, content_hash, require_files, require_readable
from orchestration.warehouse.settings import VARIABLES
from orchestration.workspace import BIGQUERY, DUCKDB, PROJECT_ROOT, Workspace

EventCallback = Callable[[Any], None]

MOST_TELEMETRY_AT_ONCE = 600_000_000
"""Bytes of landed samples, a little more than two weeks of 2,000 GPUs at 30 s. Each portion pays for its start again,
which two weeks hardly notice; far beyond, sorting and joining outgrow the memory that the warehouse may take."""


@dataclass(frozen=True)
class Window:
    """Half-open UTC days [start, end)."""

    start: date
    end: date

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ApportionError(
                f"the window {self.start} to {self.end} holds no day",
                "the end is exclusive: give the day after the last one",
            )

    @property
    def days(self) -> int:
        return (self.end - self.start).days

    def __iter__(self) -> Iterator[date]:
        return (self.start + timedelta(days=number) for number in range(self.days))


@dataclass(frozen=True)
class DbtRun:
    """What dbt did: its per-node results, in the order in which they finished."""

    results: Sequence[Any] = field(repr=False)

    def __len__(self) -> int:
        return len(self.results)


class SeedsRefused(ApportionError):
    """The policy makes no sense, and nothing was changed. Holds what its tests said, for whoever reports them."""

    def __init__(self, message: str, remedy: str, tests: Sequence[Any]) -> None:
        super().__init__(message, remedy)
        self.tests = tests


_QUIET = ("--log-level", "none", "--log-level-file", "none", "--no-write-json")


def build_arguments(
    window: Window | None, select: str | None = None, tests: bool = True, scenario: str = "", exclude: str | None = None
) -> list[str]:
    """The arguments of one `dbt build`. Pure, so that it can be tested alone."""
    arguments = [*_QUIET, "build"]
    if window:
        days = {"window_start": window.start.isoformat(), "window_end": window.end.isoformat()}
        arguments += ["--vars", json.dumps(days | ({"scenario": scenario} if scenario else {}))]
    if select:
        arguments += ["--select", *select.split()]
    if exclude:
        arguments += ["--exclude", *exclude.split()]
    # Unit tests explain models and read no data; they belong to the test suite, not to every run.
    arguments += ["--exclude-resource-type", "unit_test", *([] if tests else ["test"])]
    return arguments


def build(
    workspace: Workspace,
    window: Window,
    *,
    select: str | None = None,
    tests: bool = True,
    warehouse: Path | None = None,
    on_event: EventCallback | None = None,
) -> DbtRun:
    """Builds (and tests) the models for a window. Raises an ApportionError that names what failed, and the rows."""
    if tests:
        check_seeds(workspace)
    else:
        require_readable(workspace.seeds)
    result, results = build_portions(workspace, window, select, tests, warehouse, on_event)
    if not result.success:
        raise failure(workspace, result, results, warehouse)
    if not results:
        raise ApportionError(
            f"dbt had nothing to do for the selection {select!r}",
            "check the names after --select: tags and fqn: selectors do not depend on the working directory",
        )
    return DbtRun(results)


def build_portions(
    workspace: Workspace,
    window: Window | None,
    select: str | None = None,
    tests: bool = True,
    warehouse: Path | None = None,
    on_event: EventCallback | None = None,
) -> tuple[Any, list[Any]]:
    """Builds a window, in one dbt call unless its telemetry is too much for that; stops at the first that fails.

    Returns dbt's last result, and that of every node with the time that it took in all. A report that reads whole
    months waits for the last portion of its month.
    """
    windows: list[Window | None] = [*portions(workspace, window)] if window else [None]
    results: dict[str, Any] = {}
    for portion, following in zip(windows, [*windows[1:], None], strict=True):
        waits = portion and following and (portion.start.replace(day=1) == following.start.replace(day=1))
        arguments = build_arguments(portion, select, tests, workspace.scenario, "tag:monthly" if waits else None)
        result = invoke(workspace, arguments, on_event, warehouse)
        for one in getattr(result.result, "results", None) or []:
            if earlier := results.pop(one.node.unique_id, None):
                one.execution_time += earlier.execution_time
            results[one.node.unique_id] = one
        if not result.success:
            break
    return result, list(results.values())


def portions(workspace: Workspace, window: Window) -> Iterator[Window]:
    """The window as stretches of days that one machine builds at once."""
    start, held = window.start, 0
    for day in window if workspace.target == DUCKDB else ():
        size = landed_bytes(workspace.data, "gpu_samples", day)
        if day > start and held + size > MOST_TELEMETRY_AT_ONCE:
            yield Window(start, day)
            start, held = day, 0
        held += size
    yield Window(start, window.end)


def check_seeds(workspace: Workspace, on_event: EventCallback | None = None) -> None:
    """Refuses seeds that cannot be loaded or make no sense, before anything in the warehouse changes.

    Their tests run on a scratch warehouse, once per content of the seeds and of the project. The build that follows
    tests what it has loaded again, so a seed that changes in between reaches no model either.
    """
    workspace = workspace.on(DUCKDB)  # here and at once, wherever the models run
    # Named after everything that dbt parses, the tests included.
    checked = f"{prepare(workspace).parent.name} {content_hash(workspace.seeds)}"
    passed = workspace.data / "dbt" / "seeds_passed"
    if passed.exists() and passed.read_text() == checked:
        return
    require_readable(workspace.seeds)
    with scratch_warehouse(workspace, "seeds") as scratch:
        # Cautious: no test that reads a model besides the seeds, for there are no models.
        selection = ["--select", "resource_type:seed", "--indirect-selection", "cautious"]
        result = invoke(workspace, [*_QUIET, "build", *selection], on_event, scratch)
        if not result.success:
            raise _refusal(workspace, scratch, result)
    passed.write_text(checked)


def loads_seeds(arguments: Sequence[str]) -> bool:
    """Whether a dbt command writes the seeds' tables."""
    return not {"build", "seed"}.isdisjoint(arguments)


@contextlib.contextmanager
def scratch_warehouse(workspace: Workspace, purpose: str) -> Iterator[Path]:
    """An empty warehouse for questions that must not touch the books, gone when they are answered."""
    folder = workspace.data / "dbt" / "scratch"
    for leftover in folder.glob("*"):
        if not is_alive(int(leftover.name.rpartition("-")[2])):
            shutil.rmtree(leftover, ignore_errors=True)
    # The same file name as the warehouse's, which DuckDB makes the name of the database.
    scratch = folder / f"{purpose}-{os.getpid()}" / workspace.warehouse.name
    scratch.parent.mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch.parent)


def invoke(
    workspace: Workspace,
    arguments: Sequence[str],
    on_event: EventCallback | None = None,
    warehouse: Path | None = None,
) -> Any:
    """One dbt command on this workspace, with the prepared manifest. Returns dbt's own result object.

    `warehouse` is another DuckDB file than the workspace's own, for questions that must not touch the books.
    """
    from dbt.cli.main import dbtRunner
    from dbt.contracts.graph.manifest import Manifest

    parsed = prepare(workspace).with_name("partial_parse.msgpack")
    ensure_schema_files(workspace.data)
    with environment_of(workspace, warehouse), _spill_folder(workspace):
        manifest = Manifest.from_msgpack(parsed.read_bytes())
        manifest.build_flat_graph()
        workspace.warehouse.parent.mkdir(parents=True, exist_ok=True)
        try:
            with _garbage_left_alone():
                return dbtRunner(manifest=manifest, callbacks=[on_event] if on_event else []).invoke(
                    [*arguments, *_project(workspace)]
                )
        finally:
            if workspace.target == DUCKDB:
                _close_warehouse()


@contextlib.contextmanager
def _garbage_left_alone() -> Iterator[None]:
    """Python looks for garbage whenever some hundred objects are new, now and then in the whole parsed project."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _project(workspace: Workspace) -> list[str]:
    return ["--project-dir", str(workspace.dbt_project), "--target", workspace.target]


def _close_warehouse() -> None:
    """The adapter keeps the file open, which would lock everybody else out until this process ends."""
    from dbt.adapters.duckdb.connections import DuckDBConnectionManager

    DuckDBConnectionManager.close_all_connections()


def prepare(workspace: Workspace) -> Path:
    """Parses the project if any of its files changed since the last time; returns the path of manifest.json.

    The result is renamed into a folder named after what was parsed. dbt's own target folder would not do: every run
    writes its manifest there again, and one that is killed while writing leaves half of it.
    """
    parsed = workspace.data / "dbt" / "parsed" / workspace.target / _fingerprint(workspace)
    if parsed.is_dir():
        return parsed / "manifest.json"
    require_files(workspace.seeds)
    from dbt.cli.main import dbtRunner

    beside = parsed.with_name(f"{parsed.name}.tmp-{os.getpid()}")
    with environment_of(workspace):
        os.environ["DBT_TARGET_PATH"] = str(beside)
        result = dbtRunner().invoke(
            [
                "--quiet",
                "--log-level-file",
                "none",
                "--no-partial-parse",
                "parse",
                *_project(workspace),
            ]
        )
    if not result.success:
        raise ApportionError(
            f"dbt cannot read the project: {result.exception}",
            "mend the model, macro or YAML file that the message names",
        )
    for older in parsed.parent.glob("*"):
        _, _, process = older.name.partition(".tmp-")
        if older != beside and not (process and is_alive(int(process))):
            shutil.rmtree(older, ignore_errors=True)
    with contextlib.suppress(OSError):  # another process was faster, and parsed the same
        beside.rename(parsed)
    shutil.rmtree(beside, ignore_errors=True)
    return parsed / "manifest.json"


def _fingerprint(workspace: Workspace) -> str:
    """Changes when a file of the project does: names, sizes and times of change of everything dbt parses."""
    digest = hashlib.sha256(str(workspace.dbt_project).encode())
    if workspace.target == BIGQUERY:  # its names are in what is parsed
        digest.update(str(sorted(item for item in os.environ.items() if item[0].startswith(VARIABLES))).encode())
    folders = [PROJECT_ROOT / "dbt_project", workspace.seeds / "policy", workspace.seeds / "reference"]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    for path in sorted([*files, PROJECT_ROOT / "profiles" / "profiles.yml"]):
        if "target" in path.parts or "logs" in path.parts:
            continue
        status = path.stat()
        # A seed's rows are read when it is loaded, not when it is parsed: only its presence matters here.
        detail = "" if path.suffix == ".csv" else f"{status.st_size}:{status.st_mtime_ns}"
        digest.update(f"{path}:{detail}\n".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def environment_of(workspace: Workspace, warehouse: Path | None = None) -> Iterator[None]:
    """What dbt and Dagster are to know of the workspace, for as long as this lasts."""
    before = dict(os.environ)
    os.environ.update(workspace.environment())
    os.environ["APPORTION_WAREHOUSE"] = str(warehouse or workspace.warehouse)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _spill_folder(workspace: Workspace) -> Iterator[None]:
    """Where DuckDB puts what its memory limit does not hold: a folder of this process alone.

    Two processes would overwrite each other's files in it, and a killed one leaves them behind.
    """
    for leftover in workspace.data.glob("spill-*"):
        if not is_alive(int(leftover.name.removeprefix("spill-"))):
            shutil.rmtree(leftover, ignore_errors=True)
    spill = workspace.data / f"spill-{os.getpid()}"
    os.environ["APPORTION_SPILL"] = str(spill)
    try:
        yield
    finally:
        shutil.rmtree(spill, ignore_errors=True)


def failure(workspace: Workspace, result: Any, results: Sequence[Any], warehouse: Path | None = None) -> ApportionError:
    """A failed dbt run as one message: which node, what it said, and the rows that a test found."""
    failed = [one for one in results if str(one.status) in ("error", "fail")]
    if not failed:
        return ApportionError(f"dbt failed: {result.exception}")
    lines = []
    for one in failed[:5]:
        lines.append(_said(one))
        lines += [
            "    " + ", ".join(f"{name}={value}" for name, value in row.items())
            for row in _offending_rows(workspace, one, warehouse, limit=3)
        ]
    if len(failed) > 5:
        lines.append(f"… and {len(failed) - 5} more")
    message = "the build stopped:\n  " + "\n  ".join(lines)
    if "this incremental model are out of sync" in message:
        away = f"move {warehouse or workspace.warehouse} away" if workspace.target == DUCKDB else "drop the core tables"
        return ApportionError(
            f"{failed[0].node.name} was made by another version of the models and has other columns",
            f"{away} and run the built days again: what was landed is all that they need",
        )
    return ApportionError(
        message, "mend the row or the model that is named and run the days again; what is published has not changed"
    )


def _refusal(workspace: Workspace, scratch: Path, result: Any) -> ApportionError:
    """What the tests of the seeds found: every row with its file, the problem and the remedy."""
    results = list(getattr(result.result, "results", None) or [])
    if not results:
        return ApportionError(f"dbt failed: {result.exception}")
    lines = []
    for one in results:
        if str(one.status) in ("error", "fail"):
            rows = _offending_rows(workspace, one, scratch, limit=SHOWN)
            lines += ["{seed_file}, row {seed_row}: {problem}\n    → {remedy}".format_map(row) for row in rows] or [
                _said(one)
            ]
    more = [f"… and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return SeedsRefused(
        "the policy is refused, and no table has changed:\n  " + "\n  ".join(lines[:SHOWN] + more),
        "mend the rows that are named and run again",
        tests=[one for one in results if one.node.resource_type == "test"],
    )


def _said(one: Any) -> str:
    return f"{one.node.resource_type} {one.node.name}: {(one.message or '').strip()}"


def _offending_rows(workspace: Workspace, one: Any, warehouse: Path | None, limit: int) -> list[dict[str, Any]]:
    """The first rows that a failed test returned: a test that names the row saves the search for it."""
    from orchestration.warehouse.target import reading

    if one.node.resource_type != "test" or str(one.status) != "fail":
        return []
    try:
        with reading(workspace, warehouse) as ask:
            return ask.named(f"select * from ({one.node.compiled_code}) as failing limit {limit}")
    except ApportionError:
        return []
