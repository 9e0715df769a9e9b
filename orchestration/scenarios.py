"""What-ifs: the policy rows of a scenario laid over the base, worked out beside the books.

A scenario is a folder `seeds/scenarios/<name>/` with only the rows that differ, in files named like the seeds that they
change. Its tables go to a schema of its own, `scenario_<name>`.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from orchestration.dbt import Window, build, check_seeds, prepare
from orchestration.errors import ApportionError
from orchestration.seeds import seed_files
from orchestration.workspace import Workspace

RESULTS = ("scenario_costs", "rpt_scenario_deltas")
PERIOD = ("valid_from", "valid_to")
FIRST, LAST = "0001-01-01", "9999-12-31"
"""What an open end of a validity is as a day: ISO days compare as text."""

Row = dict[str, str]


def scenarios_of(workspace: Workspace) -> list[str]:
    folder = workspace.seeds / "scenarios"
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def schema_of(name: str) -> str:
    return "scenario_" + name.replace("-", "_")


def simulate(workspace: Workspace, name: str, window: Window) -> str:
    """Works the scenario out for the window; returns the schema that holds its tables."""
    _require_built(workspace, window)
    beside = _laid_over(workspace, name)
    with workspace.writing():
        check_seeds(beside)
        build(beside, window, select="+rpt_scenario_deltas", tests=False, warehouse=workspace.warehouse)
        _drop_steps(workspace.warehouse, schema_of(name))
    return schema_of(name)


def _require_built(workspace: Workspace, window: Window) -> None:
    days: set[str] = set()
    if workspace.warehouse.exists():
        with workspace.writing(), duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
            days = {str(day) for (day,) in warehouse.execute("select usage_date from core.fct_days").fetchall()}
    missing = [str(day) for day in window if str(day) not in days]
    if missing:
        raise ApportionError(
            f"the books do not hold {len(missing)} of the {window.days} days, the first is {missing[0]}",
            "a scenario is compared with the books: run those days first, or ask for days that are built",
        )


def _drop_steps(warehouse: Path, schema: str) -> None:
    """What a scenario leaves behind is its result; the steps to it are not for anybody to read."""
    with duckdb.connect(str(warehouse)) as connection:
        relations = connection.execute(
            "select table_name, table_type from information_schema.tables where table_schema = ?", [schema]
        ).fetchall()
        for relation, kind in relations:
            if relation not in RESULTS:
                connection.execute(f'drop {"view" if kind == "VIEW" else "table"} {schema}."{relation}" cascade')


# --- laying rows over rows ---------------------------------------------------------------------------------


def _laid_over(workspace: Workspace, name: str) -> Workspace:
    """A workspace beside the books: the same landing, the merged policy, the scenario's own dbt folder."""
    if name not in scenarios_of(workspace):
        known = ", ".join(scenarios_of(workspace)) or "none"
        raise ApportionError(
            f"there is no scenario {name!r} in {workspace.seeds / 'scenarios'} (there are: {known})",
            "make a folder of that name there, with CSVs named like the seeds that they change",
        )
    base = seed_files(workspace.seeds)
    root = workspace.data / "scenarios" / name
    seeds = root / "seeds"
    shutil.rmtree(seeds, ignore_errors=True)
    for path in base.values():
        target = seeds / path.relative_to(workspace.seeds)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    keys = _keys(workspace)
    for file in sorted((workspace.seeds / "scenarios" / name).glob("*.csv")):
        if file.stem not in base:
            raise ApportionError(
                f"{_shown(file)}: there is no seed of that name",
                "name the file like the seed that it changes: " + ", ".join(sorted(base)),
            )
        rows = overlay(_rows(base[file.stem]), _rows(file), keys[file.stem], _shown(file))
        _write(seeds / base[file.stem].relative_to(workspace.seeds), rows)
    landing = root / "landing"
    if not landing.is_symlink():
        landing.symlink_to(workspace.data / "landing")
    return replace(workspace, seeds=seeds, data=root, scenario=name)


def overlay(base: Sequence[Row], changes: Sequence[Row], key: Sequence[str], file: str) -> list[Row]:
    """The base with the changes laid over it.

    For its key and its validity a changed row takes the place of what the base says; the base keeps what lies before
    and after. A changed row that holds nothing but its key and its days leaves nothing in that place.
    """
    if changes and base and changes[0].keys() != base[0].keys():
        raise ApportionError(f"{file}: the columns differ from those of the seed", "use " + ",".join(base[0]))
    merged = list(base)
    for line, change in enumerate(changes, start=2):
        empty = [column for column in key if not change[column]]
        if empty:
            raise ApportionError(f"{file}, line {line}: {empty[0]} is empty", f"fill in {', '.join(key)}")
        merged = [
            part
            for row in merged
            for part in (_without(row, change) if all(row[column] == change[column] for column in key) else [row])
        ]
        if any(value for column, value in change.items() if column not in (*key, *PERIOD)):
            merged.append(change)
    return merged


def _without(row: Row, change: Row) -> list[Row]:
    """What is left of a row beside the days of the change."""
    if "valid_from" not in row:
        return []
    start, end = row["valid_from"] or FIRST, row["valid_to"] or LAST
    from_day, to_day = change["valid_from"] or FIRST, change["valid_to"] or LAST
    left = []
    if start < from_day:
        left.append({**row, "valid_to": min(end, from_day) if min(end, from_day) != LAST else ""})
    if end > to_day:
        left.append({**row, "valid_from": max(start, to_day) if max(start, to_day) != FIRST else ""})
    return left


def _keys(workspace: Workspace) -> Mapping[str, list[str]]:
    """Of each seed the columns that name a row, from the test that says so."""
    nodes = json.loads(prepare(workspace).read_bytes())["nodes"].values()
    return {
        node["attached_node"].rpartition(".")[2]: node["test_metadata"]["kwargs"]["key"]
        for node in nodes
        if node.get("test_metadata") and node["test_metadata"]["name"] == "sound_rows"
    }


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, restval=""))


def _write(path: Path, rows: Sequence[Row]) -> None:
    header = _header(path)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return next(csv.reader(file), [])


def _shown(file: Path) -> str:
    return f"seeds/scenarios/{file.parent.name}/{file.name}"


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
            table.add_row(team, f"{actual:,.2f}", f"{scenario:,.2f}", f"{change:+,.2f}", share)
        console.print(table)
    console.print(f"per month, team and component: {schema}.rpt_scenario_deltas in {workspace.warehouse}", soft_wrap=True)
