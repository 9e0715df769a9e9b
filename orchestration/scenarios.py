"""What-ifs: a scenario's policy worked out beside the books.

A scenario is a folder `seeds/scenarios/<name>/` with only the rows that differ, in files named like the seeds that they
change. What comes out of it goes to a schema of its own, `scenario_<name>`; the steps to it are made in the schema
`scenario`, which is gone when it is done.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orchestration.dbt import SeedsRefused, Window, build, check_seeds, prepare
from orchestration.errors import ApportionError
from orchestration.overlay import Change, read_change, write_merged
from orchestration.seeds import FOLDERS, content_hash, known_columns, seed_files
from orchestration.staleness import Hashes, stale_days, stored_hashes
from orchestration.workspace import Workspace

RESULTS = ("scenario_costs", "rpt_scenario_deltas")
STEPS = "scenario"
"""The schema that dbt builds a what-if in, whatever its name."""
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
"""Names that become a schema's, and no two of them the same one."""


def scenarios_of(workspace: Workspace) -> list[str]:
    folder = workspace.seeds / "scenarios"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def schema_of(name: str) -> str:
    return f"{STEPS}_{name.replace('-', '_')}"


def simulate(workspace: Workspace, name: str, window: Window) -> str:
    """Works the scenario out for the window; returns the schema that holds its tables."""
    files = _files(workspace, name)
    _require_current(workspace, window)
    with workspace.writing():
        beside = _beside(workspace, name)
        changes = _lay_over(beside, files)
        try:
            check_seeds(beside)
        except SeedsRefused as refusal:
            raise _of_scenario(refusal, name, changes) from None
        try:
            build(beside, window, select="+rpt_scenario_deltas", tests=False, warehouse=workspace.warehouse)
            _keep_results(workspace.warehouse, schema_of(name))
        finally:
            with duckdb.connect(str(workspace.warehouse)) as warehouse:
                warehouse.execute(f"drop schema if exists {STEPS} cascade")
    return schema_of(name)


def _require_current(workspace: Workspace, window: Window) -> None:
    stored = stored_hashes(workspace)
    missing = [day for day in window if day not in stored]
    if missing:
        raise ApportionError(
            f"the books do not hold {len(missing)} of the {window.days} days, the first is {missing[0]}",
            "a scenario is compared with the books: run those days first, or ask for days that are built",
        )
    days = {day: stored[day] for day in window}
    # Scenarios are tried one after the other: what was current stays so until something of it changes.
    passed, state = workspace.data / "scenario" / "books_current", _state(workspace, days)
    if passed.exists() and passed.read_text() == state:
        return
    stale = stale_days(workspace, days)
    if stale:
        raise ApportionError(
            f"inputs or policy of {len(stale)} of the {window.days} days changed since they were run,"
            f" the first is {stale[0]}",
            "run those days again first: the scenario would be blamed for what has changed already",
        )
    passed.parent.mkdir(parents=True, exist_ok=True)
    passed.write_text(state)


def _state(workspace: Workspace, days: Hashes) -> str:
    """A hash of everything that says whether days are stale: what they were built from, and what there is now."""
    digest = hashlib.sha256(f"{prepare(workspace).parent.name} {content_hash(workspace.seeds)}".encode())
    for day, hashes in days.items():
        digest.update(f"{day} {hashes}".encode())
        for file in sorted((workspace.data / "landing" / "landings" / f"date={day}").glob("*.parquet")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def _keep_results(warehouse: Path, schema: str) -> None:
    """What a scenario leaves behind is its result, whole or as it was before."""
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("begin")
        connection.execute(f"create schema if not exists {schema}")
        for table in RESULTS:
            connection.execute(f"create or replace table {schema}.{table} as from {STEPS}.{table}")
        connection.execute("commit")


# --- its policy --------------------------------------------------------------------------------------------


def _files(workspace: Workspace, name: str) -> dict[str, Path]:
    """The scenario's CSVs, by the names under which people know them; each is named like the seed that it changes."""
    folder = workspace.seeds / "scenarios" / name
    if name not in scenarios_of(workspace):
        known = ", ".join(scenarios_of(workspace)) or "none"
        raise ApportionError(
            f"there is no scenario {name!r} in {folder.parent} (there are: {known})",
            "make a folder of that name there, with CSVs named like the seeds that they change",
        )
    if not NAME.fullmatch(name):
        raise ApportionError(
            f"the name of the scenario {name!r} cannot become a schema's",
            "rename its folder: small letters and digits, with hyphens between them",
        )
    seeds = [seed for seed in seed_files(workspace.seeds) if seed in known_columns()]
    files = {f"seeds/scenarios/{path.relative_to(folder.parent)}": path for path in sorted(folder.rglob("*.csv"))}
    strange = [file for file, path in files.items() if path.stem not in seeds]
    if strange or not files:
        raise ApportionError(
            f"{strange[0]}: there is no seed of that name" if strange else f"there is no CSV in {folder}",
            "name a file like the seed whose rows it changes: " + ", ".join(seeds),
        )
    return files


def _beside(workspace: Workspace, name: str) -> Workspace:
    """A workspace beside the books with the same landing and a copy of the seeds.

    All scenarios use the same one in turn, so that its dbt project is parsed once for all of them.
    """
    data = workspace.data / "scenario"
    shutil.rmtree(data / "seeds", ignore_errors=True)
    for path in seed_files(workspace.seeds).values():
        copy = data / "seeds" / path.relative_to(workspace.seeds)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    landing = data / "landing"
    landing.unlink(missing_ok=True)
    landing.symlink_to(workspace.data.resolve() / "landing")
    return replace(workspace, seeds=data / "seeds", data=data, scenario=name)


def _lay_over(beside: Workspace, files: Mapping[str, Path]) -> list[Change]:
    """Puts what the scenario says in the place of what the seeds say; returns its changes."""
    seeds, keys = seed_files(beside.seeds), _keys(beside)
    changes = [read_change(path, file, seeds[path.stem], keys[path.stem]) for file, path in files.items()]
    for change in changes:
        write_merged(seeds[change.seed], change)
    return changes


def _keys(workspace: Workspace) -> Mapping[str, list[str]]:
    """Of each seed the columns that name a row, from the test that says so."""
    nodes = json.loads(prepare(workspace).read_bytes())["nodes"].values()
    return {
        node["attached_node"].rpartition(".")[2]: node["test_metadata"]["kwargs"]["key"]
        for node in nodes
        if node.get("test_metadata") and node["test_metadata"]["name"] == "sound_rows"
    }


def _of_scenario(refusal: SeedsRefused, name: str, changes: Sequence[Change]) -> SeedsRefused:
    """The refusal of the merged policy, with the scenario's own rows named by the scenario's file."""
    message = refusal.message.replace("the policy is refused", f"the policy of the scenario {name!r} is refused", 1)
    for change in changes:
        for row in map(change.named, change.rows):
            for folder in FOLDERS:
                message = message.replace(f"seeds/{folder}/{change.seed}.csv, row {row}:", f"{change.file}, row {row}:")
    return SeedsRefused(
        message,
        "mend the rows that are named, or the rows of the scenario that they no longer agree with, and run again",
        refusal.tests,
    )


# --- showing -----------------------------------------------------------------------------------------------


def print_deltas(workspace: Workspace, schema: str, console: Console) -> None:
    with workspace.writing(), duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        rows = warehouse.execute(
            f"""
            select currency, team_name, sum(actual_cost), sum(scenario_cost), sum(change_cost)
            from {schema}.rpt_scenario_deltas
            group by currency, team_id, team_name
            order by currency desc, sum(change_cost), team_id
            """
        ).fetchall()
    for currency in dict.fromkeys(row[0] for row in rows):
        table = Table(title=f"{currency}: the books and the scenario", title_justify="left", box=SIMPLE_HEAD)
        table.add_column("team")
        for column in ("actual", "scenario", "change", "%"):
            table.add_column(column, justify="right", no_wrap=True)
        shown = [row[1:] for row in rows if row[0] == currency]
        totals = [sum(column) for column in zip(*(row[1:] for row in shown), strict=True)]
        for team, actual, scenario, change in [*shown, ("all", *totals)]:
            share = f"{100 * change / abs(actual):+.1f}" if actual else "–"
            table.add_row(escape(team), f"{actual:,.2f}", f"{scenario:,.2f}", f"{change:+,.2f}", share)
        console.print(table)
    console.print(
        f"per month, team and component: {schema}.rpt_scenario_deltas in {workspace.warehouse}", soft_wrap=True
    )
