"""What the tests of whole runs share: workspaces in folders of their own, runs of them, and tables compared."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa

from orchestration.dbt import Window, build
from orchestration.demo import generate
from orchestration.landing.loader import land
from orchestration.settings import load_sources
from orchestration.workspace import PROJECT_ROOT, Workspace

MARTS = ("core", "reporting")
RUN_SECONDS = 240
"""No run of these small companies takes this long; one that does is waiting for something."""


def day(text: str) -> date:
    return date.fromisoformat(text)


def window(start: str, end: str) -> Window:
    return Window(day(start), day(end))


GOLDEN = window("2026-03-10", "2026-03-11")
DEMO = window("2026-01-01", "2026-01-04")
MINUTES_APART = 10
"""Of the demo's telemetry, which is per minute, every tenth sample is enough for these tests."""


def small_demo(root: Path, days: Window) -> Workspace:
    """The first days of the demo company with its own copy of the seeds and a tenth of its telemetry."""
    generate(root / "data", days=days.days)
    for file in (root / "data" / "inbox" / "telemetry").glob("*/*.parquet"):
        thinned = file.with_suffix(".thinned")
        duckdb.sql(
            f"copy (from '{file}' where minute(timestamp) % {MINUTES_APART} = 0) to '{thinned}' (format parquet)"
        )
        thinned.replace(file)
    sources = (PROJECT_ROOT / "profiles" / "sources.yml").read_text(encoding="utf-8")
    assert "interval_seconds: 60\n" in sources
    sources = sources.replace("interval_seconds: 60\n", f"interval_seconds: {60 * MINUTES_APART}\n")
    (root / "sources.yml").write_text(sources, encoding="utf-8")
    shutil.copytree(PROJECT_ROOT / "seeds", root / "seeds")
    return Workspace(root / "sources.yml", root / "seeds", root / "data")


def copy_of(workspace: Workspace, root: Path) -> Workspace:
    """The same sources, inbox and policy in another place, with nothing made of them yet."""
    shutil.copytree(workspace.seeds, root / "seeds")
    shutil.copytree(workspace.data / "inbox", root / "data" / "inbox", copy_function=shutil.copy2)
    shutil.copy(workspace.sources_file, root / "sources.yml")
    return Workspace(root / "sources.yml", root / "seeds", root / "data")


# --- runs --------------------------------------------------------------------------------------------------


def land_and_build(workspace: Workspace, days: Window) -> None:
    """What a run does with its days, without Dagster around it and without the checks, for speed."""
    for source in load_sources(workspace.sources_file, workspace.data):
        land(source, days.start, days.end, workspace.data)
    build(workspace, days, tests=False)


def command(workspace: Workspace, *arguments: str) -> list[str]:
    """The installed `apportion` on a workspace, for a process of its own."""
    places = {"--sources": workspace.sources_file, "--seeds": workspace.seeds, "--data": workspace.data}
    options = [str(part) for pair in places.items() for part in pair]
    return [str(Path(sys.executable).with_name("apportion")), *options, *arguments]


def start(workspace: Workspace, *arguments: str, output: int = subprocess.PIPE) -> subprocess.Popen[str]:
    """In a process group of its own, so that it can be killed with everything that it started."""
    return subprocess.Popen(
        command(workspace, *arguments),
        env={**os.environ, "COLUMNS": "200"},
        cwd=PROJECT_ROOT,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Waits for a run, and tells what it printed if it failed."""
    output, _ = process.communicate(timeout=RUN_SECONDS)
    assert process.returncode == 0, output
    return output


def run(workspace: Workspace, days: Window) -> str:
    return finish(start(workspace, "run", "--from", str(days.start), "--to", str(days.end)))


# --- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tables:
    """Every table and view of the star and the reports, whole and in one order."""

    by_name: dict[str, pa.Table]

    def differences(self, other: Tables) -> list[str]:
        """Empty, or one line per table that is not bit by bit the same, with a row of it."""
        lines = []
        for name in sorted(self.by_name.keys() | other.by_name.keys()):
            one, two = self.by_name.get(name), other.by_name.get(name)
            if one is None or two is None:
                lines.append(f"{name}: only on one side")
            elif one.schema != two.schema:
                lines.append(f"{name}: {one.schema} is not {two.schema}")
            elif not one.equals(two):
                rows, others = one.to_pylist(), two.to_pylist()
                only = [row for row in rows if row not in others][:1], [row for row in others if row not in rows][:1]
                lines.append(f"{name}: {len(rows)} and {len(others)} rows, such as {only[0]} and {only[1]}")
        return lines

    def days_that_differ(self, other: Tables) -> set[date]:
        """The UTC days of which any fact or daily report says something else."""
        dated = {name for name, table in self.by_name.items() if "usage_date" in table.column_names}
        found: set[date] = set()
        for name in dated:
            one, two = _by_day(self.by_name[name]), _by_day(other.by_name[name])
            found |= {day for day in one.keys() | two.keys() if one.get(day) != two.get(day)}
        return found

    def days(self, name: str) -> set[date]:
        return set(_by_day(self.by_name[name]))


def _by_day(table: pa.Table) -> dict[date, list[dict]]:
    found: dict[date, list[dict]] = {}
    for row in table.to_pylist():
        found.setdefault(row["usage_date"], []).append(row)
    return found


def tables_of(database: Path, schemas: Sequence[str] = MARTS) -> Tables:
    """Of a warehouse, or of a published copy of one."""
    with duckdb.connect(str(database), read_only=True) as connection:
        names = connection.execute(
            "select table_schema, table_name from information_schema.tables where list_contains(?, table_schema)",
            [list(schemas)],
        ).fetchall()
        return Tables(
            {
                table: connection.sql(f"select * from {schema}.{table} order by all").to_arrow_table()
                for schema, table in names
            }
        )
