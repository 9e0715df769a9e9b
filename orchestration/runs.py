"""Runs of the pipeline in this process, recorded in the workspace's Dagster instance like any other run."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg

from orchestration.dbt import Window, environment_of
from orchestration.errors import ApportionError
from orchestration.partitions import range_tags
from orchestration.workspace import Workspace

PROCESS_TAG = "apportion/process"

INSTANCE_SETTINGS = """\
# Written by apportion. One writer at a time, on one machine: the warehouse is a single file.
concurrency:
  pools:
    default_limit: 1
    granularity: op
event_log_storage:
  module: orchestration.event_log
  class: WarmSqliteEventLogStorage
  config:
    base_dir: {home}/history/runs
nux:
  enabled: false
telemetry:
  enabled: false
"""


def prepare_home(workspace: Workspace) -> Path:
    """The workspace's own DAGSTER_HOME, with the settings that its single-file warehouse needs."""
    home = workspace.dagster_home
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    wanted = INSTANCE_SETTINGS.format(home=home)
    if not settings.exists() or settings.read_text() != wanted:
        settings.write_text(wanted)
    return home


@contextlib.contextmanager
def instance_of(workspace: Workspace) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.from_config(str(prepare_home(workspace))) as instance:
        reap_dead_runs(instance)
        yield instance


def process_tag() -> dict[str, str]:
    """Names the process that carries a run, so that its death can be told from its being slow."""
    return {PROCESS_TAG: f"{socket.gethostname()}:{os.getpid()}:{_started(os.getpid())}"}


def sign(context: dg.AssetExecutionContext | dg.OpExecutionContext) -> None:
    """Marks the run of an op with its process. Runs from the command line are marked from their first moment."""
    if PROCESS_TAG not in context.run.tags:
        context.instance.add_run_tags(context.run.run_id, process_tag())


def reap_dead_runs(instance: dg.DagsterInstance) -> list[str]:
    """Fails the runs whose process is gone and frees their pool slots; returns their ids.

    A killed process cannot report its own end. Without this its run looks alive for ever, keeps the one slot of
    the warehouse pool, and every later run waits for it.
    """
    reaped = []
    unfinished = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING])
    for run in instance.get_runs(filters=unfinished):
        host, _, rest = run.tags.get(PROCESS_TAG, "").partition(":")
        pid, _, started = rest.partition(":")
        if host == socket.gethostname() and _started(int(pid)) != started:
            instance.report_run_failed(run, "the process of this run was killed")
            instance.event_log_storage.free_concurrency_slots_for_run(run.run_id)
            reaped.append(run.run_id)
    return reaped


def _started(pid: int) -> str:
    """When a process started, as the kernel tells; empty if there is none. Ids are reused, starts are not."""
    if Path("/proc/self/stat").exists():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        except OSError:
            return ""
    asked = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def run_pipeline(workspace: Workspace, window: Window, tags: Mapping[str, str] | None = None) -> None:
    """Lands, builds, checks and publishes a window in this process, through the same assets that Dagster shows."""
    from orchestration.defs import definitions_of

    with environment_of(workspace), instance_of(workspace) as instance:
        job = definitions_of(workspace).resolve_job_def("pipeline")
        try:
            job.execute_in_process(
                instance=instance,
                tags={**range_tags(window), **process_tag(), **(tags or {})},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
                raise_on_error=True,
            )
        except Exception as error:
            readable = _readable(error)
            if readable is error:
                raise
            raise readable from None


def _readable(error: BaseException) -> BaseException:
    """The message meant for people, wherever Dagster wrapped it; the error itself if there is none."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is None or id(cause) in seen:
            continue
        if isinstance(cause, ApportionError):
            return cause
        seen.add(id(cause))
        waiting += [cause.__context__, cause.__cause__]
    return error
