"""Day files: written beside and renamed, so that a reader or a crash sees the old day or the new day."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.connectors.sql import literal
from orchestration.landing.schemas import LANDINGS_SCHEMA, TABLES, WHOLE_TABLES

SCHEMA_DAY = "date=9999-12-31"
COPY_OPTIONS = "format parquet, compression zstd, parquet_version v2, dictionary_size_limit 20000"
"""On GPU samples the second version's integer encodings halve the size, and a small dictionary limit a third
of the writing time, because gauges hardly repeat."""


def folder(data_dir: Path, table: str, day: date) -> Path:
    return data_dir / "landing" / table / f"date={day}"


def day_file(data_dir: Path, table: str, day: date, source: str) -> Path:
    return folder(data_dir, table, day) / f"{source}.parquet"


def landed_bytes(data_dir: Path, table: str, day: date) -> int:
    return sum(file.stat().st_size for file in folder(data_dir, table, day).glob("*.parquet"))


def write_day(con: duckdb.DuckDBPyConnection, target: Path, select: str) -> int:
    """Replaces a day by the rows of a SELECT; returns the size of the file."""
    beside = _beside(target)
    con.execute(f"copy ({select}) to {literal(str(beside))} ({COPY_OPTIONS})")
    size = beside.stat().st_size
    os.replace(beside, target)
    return size


def remove_day(target: Path) -> None:
    target.unlink(missing_ok=True)


def write_landings(data_dir: Path, source: str, day: date, rows: list[dict[str, object]]) -> None:
    """Says what a day was built from; written after the day itself, so that it never promises too much."""
    target = day_file(data_dir, "landings", day, source)
    beside = _beside(target)
    pq.write_table(pa.Table.from_pylist([{**row, "date": day} for row in rows], LANDINGS_SCHEMA), beside)
    os.replace(beside, target)


def landed_hashes(data_dir: Path, source: str, day: date) -> dict[str, str] | None:
    """What a day contained when it was last landed, by table; None: it never was."""
    path = day_file(data_dir, "landings", day, source)
    if not path.exists():
        return None
    try:
        table = pq.read_table(path, columns=["table_name", "content_hash"], partitioning=None)
    except pa.ArrowInvalid:
        return None
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))


def landed_days(data_dir: Path, source: str = "*") -> set[date]:
    """The days that a source (or any) has landed, also those on which it had nothing to say."""
    files = (data_dir / "landing" / "landings").glob(f"date=*/{source}.parquet")
    return {
        date.fromisoformat(file.parent.name.removeprefix("date=")) for file in files if file.parent.name != SCHEMA_DAY
    }


def last_landed_day(data_dir: Path) -> date | None:
    """The last day that any source has landed."""
    return max(landed_days(data_dir), default=None)


def forget_undeclared(data_dir: Path, declared: Iterable[str]) -> list[str]:
    """Removes what sources that are no longer declared have landed; returns their names.

    A source that was renamed would otherwise count twice, under both names. The days show as stale where it was.
    """
    keep = {*declared, "_schema"}
    gone = [
        file
        for file in (data_dir / "landing").glob("*/date=*/*.parquet")
        if file.stem not in keep and file.parts[-3] not in WHOLE_TABLES  # history stays
    ]
    for file in gone:
        file.unlink()
    return sorted({file.stem for file in gone})


def ensure_schema_files(data_dir: Path) -> None:
    """An empty file per table, because a query over a folder without any file is an error.

    It sorts last: DuckDB guesses the size of a table from its first file, and an empty one misleads its joins.
    """
    with_date = {name: table.schema.append(pa.field("date", pa.date32())) for name, table in TABLES.items()}
    for name, schema in {**with_date, "landings": LANDINGS_SCHEMA, **WHOLE_TABLES}.items():
        target = data_dir / "landing" / name / SCHEMA_DAY / "_schema.parquet"
        if target.exists() and pq.read_schema(target).equals(schema):
            continue
        beside = _beside(target)
        pq.write_table(schema.empty_table(), beside)
        os.replace(beside, target)


def clean_up(data_dir: Path, source: str, tables: Iterable[str]) -> None:
    """Removes what a killed run left half written."""
    landing = data_dir / "landing"
    for table in [*tables, "landings", "deliveries"]:
        for path in landing.glob(f"{table}/date=*/{source}.parquet.tmp-*"):
            path.unlink(missing_ok=True)
    for path in landing.glob(f"_index/{source}.json.tmp-*"):
        path.unlink(missing_ok=True)
    for path in landing.glob("_spill-*"):
        if not is_alive(int(path.name.removeprefix("_spill-"))):
            shutil.rmtree(path, ignore_errors=True)


def is_alive(process: int) -> bool:
    """Other sources may be landing at this moment, in other processes."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _beside(target: Path) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f"{target.name}.tmp-{os.getpid()}")
