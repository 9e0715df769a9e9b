"""A workspace: which sources, which policy, and where the data goes. Several can live side by side."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from orchestration.errors import ApportionError
from orchestration.machine import builders, memory_limit, threads

_PACKAGE = Path(__file__).resolve().parent


def _project_root() -> Path:
    """Where `dbt_project/`, `profiles/` and `seeds/` are: the checkout, or the copy inside an installed wheel."""
    bundled = _PACKAGE / "_project"
    return bundled if bundled.is_dir() else _PACKAGE.parent


PROJECT_ROOT = _project_root()
DUCKDB, BIGQUERY = "duckdb", "bigquery"
TARGETS = (DUCKDB, BIGQUERY)


@dataclass(frozen=True)
class Workspace:
    sources_file: Path
    seeds: Path
    data: Path
    scenario: str = ""
    """The what-if that this workspace works out; empty for the books."""
    focus: bool = False
    """Whether its dbt project has the models of FOCUS out as well."""
    target: str = DUCKDB
    """Where the models run, as profiles.yml calls it."""

    @classmethod
    def locate(
        cls,
        sources: Path | None = None,
        seeds: Path | None = None,
        data: Path | None = None,
        target: str | None = None,
    ) -> Workspace:
        """Each part from the argument, else from its environment variable, else the project's own."""

        def choose(argument: Path | None, variable: str, default: Path) -> Path:
            return (argument or Path(os.environ.get(variable) or default)).expanduser().resolve()

        return cls(
            sources_file=choose(sources, "APPORTION_SOURCES", PROJECT_ROOT / "profiles" / "sources.yml"),
            seeds=choose(seeds, "APPORTION_SEEDS", PROJECT_ROOT / "seeds"),
            data=choose(data, "APPORTION_DATA", PROJECT_ROOT / "data"),
        ).on(target or os.environ.get("APPORTION_TARGET") or DUCKDB)

    def on(self, target: str) -> Workspace:
        """The same workspace on another engine."""
        if target not in TARGETS:
            raise ApportionError(f"there is no target '{target}'", f"choose from {', '.join(TARGETS)}")
        return replace(self, target=target)

    @property
    def warehouse(self) -> Path:
        return self.data / "warehouse.duckdb"

    @property
    def published(self) -> Path:
        return self.data / "published"

    @property
    def dagster_home(self) -> Path:
        return self.data / "dagster"

    @property
    def dbt_target(self) -> Path:
        return self.data / "dbt" / "target"

    def environment(self) -> dict[str, str]:
        """What dbt and a Dagster process need to know to work on this workspace."""
        return {
            "APPORTION_SOURCES": str(self.sources_file),
            "APPORTION_SEEDS": str(self.seeds),
            "APPORTION_DATA": str(self.data),
            "APPORTION_SCENARIO": self.scenario,
            "APPORTION_FOCUS": "1" if self.focus else "",
            "APPORTION_TARGET": self.target,
            "APPORTION_MEMORY": memory_limit(),
            "APPORTION_THREADS": threads(),
            "APPORTION_BUILDERS": builders(),
            "DBT_PROFILES_DIR": str(PROJECT_ROOT / "profiles"),
            "DBT_TARGET_PATH": str(self.dbt_target),
            "DBT_LOG_PATH": str(self.data / "dbt" / "logs"),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
            "DO_NOT_TRACK": "1",
            "DAGSTER_EVENT_BATCH_SIZE": "1000",
        }

    @cached_property
    def dbt_project(self) -> Path:
        """The dbt project with this workspace's seeds: a folder of links inside the data folder.

        dbt finds seeds relative to the project and writes a copy of what it ran to the same relative path below
        its target folder. With seeds given by an absolute path that copy would replace the seed itself.
        """
        if not self.seeds.is_dir():
            raise ApportionError(
                f"the seeds folder {self.seeds} does not exist",
                "point --seeds (or APPORTION_SEEDS) at a folder with policy/ and reference/",
            )
        root = self.data / "dbt" / "linked"
        project = root / "dbt_project"
        project.mkdir(parents=True, exist_ok=True)
        for part in ("dbt_project.yml", "models", "macros", "tests"):
            _link(project / part, PROJECT_ROOT / "dbt_project" / part)
        _link(root / "seeds", self.seeds)
        return project

    @contextlib.contextmanager
    def writing(self, wait_seconds: float = 600) -> Iterator[None]:
        """Holds the one writer's lock. The kernel drops it with the process, so a killed run blocks nobody."""
        self.data.mkdir(parents=True, exist_ok=True)
        with (self.data / "writer.lock").open("w") as lock:
            deadline = time.monotonic() + wait_seconds
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ApportionError(
                            f"another run has been writing to {self.data} for {wait_seconds:.0f} s",
                            "wait for it to end, or end it, and run again",
                        ) from None
                    time.sleep(0.2)
            yield


def _link(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    beside = link.with_name(f"{link.name}.new-{os.getpid()}")
    beside.symlink_to(target)
    beside.replace(link)
