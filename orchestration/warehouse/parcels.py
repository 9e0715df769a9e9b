"""Landed files of several sources and days as one file that BigQuery can load."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from orchestration.connectors.sql import file_literal, identifier, literal
from orchestration.errors import ApportionError
from orchestration.landing import days as day_files
from orchestration.warehouse.tables import SCHEMAS


@dataclass(frozen=True)
class Parcel:
    path: Path
    rows: int


@contextmanager
def outbox(data_dir: Path) -> Iterator[Path]:
    """A folder for parcels on the disk of the data, gone afterwards, as is what a killed process left."""
    folder = data_dir / "outbox" / str(os.getpid())
    for left in folder.parent.glob("[0-9]*"):
        if left == folder or not day_files.is_alive(int(left.name)):
            shutil.rmtree(left, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def landed_files(data_dir: Path, table: str, days: Sequence[date]) -> list[Path]:
    return [file for day in days for file in sorted(day_files.folder(data_dir, table, day).glob("*.parquet"))]


def all_files(data_dir: Path, table: str) -> list[Path]:
    found = (data_dir / "landing" / table).glob("date=*/*.parquet")
    return sorted(file for file in found if file.parent.name != day_files.SCHEMA_DAY)


@contextmanager
def reading(table: str, files: Sequence[Path]) -> Iterator[str]:
    """The rows of landed files as SQL, and what is wrong with them in our words."""
    try:
        yield f"read_parquet([{', '.join(map(file_literal, files))}], hive_partitioning = false)"
    except (duckdb.BinderException, duckdb.InvalidInputException, duckdb.IOException) as error:
        raise ApportionError(
            f"the landed files of {table} from {files[0].parent.name} to {files[-1].parent.name} cannot be read:"
            f" {str(error).splitlines()[0]}",
            "they are damaged or of another version: land these days again",
        ) from error


def pack(con: duckdb.DuckDBPyConnection, table: str, files: Sequence[Path], folder: Path) -> Parcel:
    """One file of them all, streamed; with the plain encodings, which every reader of Parquet knows."""
    target = folder / f"{table}.parquet"
    schema = SCHEMAS[table]
    if not files:
        pq.write_table(schema.empty_table(), target)
        return Parcel(target, 0)
    with reading(table, files) as rows_of:
        ((rows,),) = con.execute(
            f"copy (select {', '.join(map(identifier, schema.names))} from {rows_of})"
            f" to {literal(str(target))} (format parquet, compression zstd, parquet_version v1)"
        ).fetchall()
    return Parcel(target, rows)
