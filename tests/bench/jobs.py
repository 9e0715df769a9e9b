"""What benchmarks run, each in a process of its own: `jobs.py <job> <arguments>`; says what it did as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestration.dbt import Window


# ── a large bill ─────────────────────────────────────────────────────────────────────────────────────
def write_bill(target: str, lines: str) -> int:
    from tests.bench.bill import write_bill

    write_bill(Path(target), int(lines))
    return int(lines)


def convert(files: str, kind: str) -> int:
    """What DuckDB does by itself: columns of text as they are, with as many threads as landing has."""
    import duckdb

    from orchestration.landing.engine import THREADS

    read = f"read_csv('{files}', all_varchar = true)" if kind == "csv" else f"read_parquet('{files}')"
    with (
        tempfile.TemporaryDirectory(dir=Path(files).parent) as scratch,
        duckdb.connect(config={"threads": min(THREADS, os.cpu_count() or 1)}) as con,
    ):
        target = f"{scratch}/converted.parquet"
        con.execute(f"copy (from {read}) to '{target}'")
        return con.execute(f"select count(*) from '{target}'").fetchall()[0][0]


def land_bill(bill: str) -> int:
    """The whole month, into an empty workspace."""
    from orchestration.landing.loader import land
    from orchestration.settings import load_sources
    from tests.bench.bill import MONTH

    workspace = Path(tempfile.mkdtemp(dir=Path(bill).parent))
    try:
        sources = workspace / "sources.yml"
        sources.write_text(f"sources: [{{name: bench, area: billing, kind: aws_cur, path: '{bill}'}}]\n")
        (source,) = load_sources(sources, workspace)
        since, until = map(date.fromisoformat, MONTH)
        return land(source, since, until, workspace).tables["charges"].landed
    finally:
        shutil.rmtree(workspace)


# ── other exports ────────────────────────────────────────────────────────────────────────────────────
def write_export(key: str, target: str) -> int:
    from tests.bench.exports import write_export

    return write_export(key, Path(target))


def read_alone(key: str, file: str) -> int:
    """DuckDB reads an export as it can, every column, and writes Parquet."""
    import duckdb

    from orchestration.landing.engine import THREADS
    from tests.bench.exports import EXPORTS

    with (
        tempfile.TemporaryDirectory(dir=Path(file).parent) as scratch,
        duckdb.connect(config={"threads": min(THREADS, os.cpu_count() or 1)}) as con,
    ):
        con.execute(f"copy (from {EXPORTS[key].alone.format(file=file)}) to '{scratch}/read.parquet'")
    return EXPORTS[key].rows


def land_export(key: str, file: str) -> int:
    """An export as the only file of an empty workspace."""
    from orchestration.landing.loader import land
    from orchestration.settings import load_sources
    from tests.bench.exports import EXPORTS

    export = EXPORTS[key]
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as folder:
        workspace = Path(folder)
        sources = workspace / "sources.yml"
        place = "jobs" if export.source["kind"] == "slurm" else "path"
        sources.write_text(json.dumps({"sources": [{"name": key, place: file, **export.source}]}))
        (source,) = load_sources(sources, workspace)
        since, until = map(date.fromisoformat, export.days)
        landed = land(source, since, until, workspace)
        if not any(table.rows for table in landed.tables.values()) or any(
            table.quarantined for table in landed.tables.values()
        ):
            sys.exit(f"{export.name}: {landed}")
    return export.rows


# ── a large company ──────────────────────────────────────────────────────────────────────────────────
def write_world(folder: str, parameters: str) -> int:
    from tests.bench.world import World, write_world

    world = World(**json.loads(parameters))
    write_world(world, Path(folder))
    return world.samples


def write_empty_world(folder: str, parameters: str) -> int:
    from tests.bench.world import World, write_empty_world

    write_empty_world(World(**json.loads(parameters)), Path(folder))
    return 0


def land(folder: str, source_name: str, first: str, days: str) -> int:
    """One source of a workspace."""
    from orchestration.landing.loader import land
    from orchestration.settings import load_sources
    from tests.bench.world import workspace_of

    workspace = workspace_of(Path(folder))
    (source,) = (one for one in load_sources(workspace.sources_file, workspace.data) if one.name == source_name)
    window = _window(first, days)
    return sum(table.rows for table in land(source, window.start, window.end, workspace.data).tables.values())


def prepare(folder: str) -> int:
    """Parses the dbt project, which is done once for each state of its files."""
    from orchestration import dbt
    from tests.bench.world import workspace_of

    dbt.prepare(workspace_of(Path(folder)))
    return 0


def start(folder: str) -> int:
    """Everything that dbt does before its first node: imports, the parsed project, the connection."""
    from orchestration import dbt
    from tests.bench.world import workspace_of

    result = dbt.invoke(workspace_of(Path(folder)), dbt.build_arguments(None, "int_days", tests=False))
    return len(result.result.results)


def build(folder: str, first: str, days: str, tests: str) -> int:
    """The models of a window, with or without their tests."""
    from orchestration import dbt
    from tests.bench.world import workspace_of

    return len(dbt.build(workspace_of(Path(folder)), _window(first, days), tests=tests == "tests"))


def stretch_history(folder: str, days: str) -> int:
    """Copies the first week of the facts to the weeks before it, until there is a history of so many days."""
    import duckdb

    from tests.bench.world import FIRST_DAY, workspace_of

    copies = (int(days) - 1) // 7
    rows = 0
    with duckdb.connect(str(workspace_of(Path(folder)).warehouse)) as con:
        con.execute("set TimeZone = 'UTC'")
        tables = con.execute(
            """
            select
                table_schema, table_name,
                list((column_name, data_type)) filter (data_type = 'DATE' or data_type like 'TIMESTAMP%')
            from information_schema.columns inner join information_schema.tables using (table_schema, table_name)
            where table_schema in ('core', 'reporting') and table_type = 'BASE TABLE'
            group by all having list_contains(list(column_name), 'usage_date')
            """
        ).fetchall()
        for schema, table, moved in tables:
            con.execute(f"delete from {schema}.{table} where usage_date < ?", [FIRST_DAY])
            earlier = ", ".join(
                f"cast(facts.{column} - to_days(cast(7 * week.range as integer)) as {kind}) as {column}"
                for column, kind in moved
            )
            (added,) = con.execute(
                f"insert into {schema}.{table} by name select facts.* replace ({earlier})"
                f" from {schema}.{table} as facts cross join range(1, {copies + 1}) as week"
                " where usage_date between $first and $first + 6",
                {"first": FIRST_DAY},
            ).fetchone()
            rows += added
    return rows


def peer(module: str, function: str, folder: str, first: str, days: str) -> int:
    """A floor or a peer on the same landed files."""
    from importlib import import_module

    from tests.bench.world import workspace_of

    workspace = workspace_of(Path(folder))
    with tempfile.TemporaryDirectory(dir=folder) as target:
        run = getattr(import_module(f"tests.bench.{module}"), function)
        run(workspace.data, workspace.seeds, Path(target), list(_window(first, days)))
    return 0


def _window(first: str, days: str) -> Window:
    from orchestration.dbt import Window

    start = date.fromisoformat(first)
    return Window(start, start + timedelta(days=int(days)))


JOBS = {
    job.__name__: job
    for job in (
        write_bill,
        convert,
        land_bill,
        write_export,
        read_alone,
        land_export,
        write_world,
        write_empty_world,
        land,
        prepare,
        start,
        build,
        stretch_history,
        peer,
    )
}

if __name__ == "__main__":
    job, *arguments = sys.argv[1:]
    began = time.perf_counter()
    rows = JOBS[job](*arguments)
    print(json.dumps({"rows": rows, "wall": time.perf_counter() - began}))
