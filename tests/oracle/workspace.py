"""Worlds as a workspace on disk: landing files per table and day, and seed files."""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.landing.schemas import LANDINGS_SCHEMA, TABLES

from .seed_tables import CONSTANTS, POLICY, SEED_COLUMNS, UNDATED, Row

if TYPE_CHECKING:
    from .worlds import World

SOURCE = "test"
SCHEMA_DAY = "date=9999-12-31"
_END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Packed:
    """Many worlds as one company's data."""

    landing: dict[str, dict[date, list[Row]]]
    """Rows per table and day: whole records, on each day that they overlap."""
    seeds: dict[str, list[Row]]


# --- which day holds which record --------------------------------------------------------------------------


def spans(table: str, record: Row) -> list[tuple[datetime, datetime]]:
    """The intervals that put a record on a day; other charges than usage have their billing period too."""
    starts, ends = TABLES[table].starts, TABLES[table].ends
    end = record[ends]
    if end is None:
        end = record.get("as_of_at", _END)
    found = [(record[starts], max(record[starts], end))]
    if table == "charges" and record["charge_category"] != "Usage":
        found.append((record["billing_period_start_at"], record["billing_period_end_at"]))
    return found


def lands_on(table: str, record: Row, day: date) -> bool:
    midnight = datetime.combine(day, time(), UTC)
    following = midnight + timedelta(days=1)
    return any(
        midnight <= start < following if start == end else start < following and end > midnight
        for start, end in spans(table, record)
    )


def landed(world: World, day: date | None = None) -> dict[str, list[Row]]:
    """The records of a world that its landing holds for a day (its own by default)."""
    on = day or world.day
    return {table: [row for row in rows if lands_on(table, row, on)] for table, rows in world.tables.items()}


def pack(worlds: Iterable[World]) -> Packed:
    """Land each world on its own day and on the two beside it, and put all seeds together."""
    landing: dict[str, dict[date, list[Row]]] = {table: defaultdict(list) for table in TABLES}
    seeds: dict[str, list[Row]] = {name: [] for name in SEED_COLUMNS}
    for world in worlds:
        for offset in (-1, 0, 1):
            day = world.day + timedelta(days=offset)
            for table, rows in landed(world, day).items():
                if rows:
                    landing[table][day].extend(rows)
        for name, rows in world.seeds.items():
            if name not in UNDATED:
                seeds[name].extend(rows)
    return Packed({table: dict(days) for table, days in landing.items()}, seeds | CONSTANTS)


# --- files -------------------------------------------------------------------------------------------------


def write_workspace(packed: Packed, root: Path) -> None:
    """Write `data/landing` and `seeds` under root, as the pipeline would find them after loading."""
    landing = root / "data" / "landing"
    manifest: dict[date, list[Row]] = defaultdict(list)
    for table, days in packed.landing.items():
        schema = TABLES[table].schema.append(pa.field("date", pa.date32()))
        _write(landing / table / SCHEMA_DAY / "_schema.parquet", [], schema)
        for day, rows in days.items():
            dated = [{**row, "date": day} for row in rows]
            _write(landing / table / f"date={day}" / f"{SOURCE}.parquet", dated, schema)
            manifest[day].append(_landing(table, day, rows))
    _write(landing / "landings" / SCHEMA_DAY / "_schema.parquet", [], LANDINGS_SCHEMA)
    for day, rows in manifest.items():
        _write(landing / "landings" / f"date={day}" / f"{SOURCE}.parquet", rows, LANDINGS_SCHEMA)
    for name, rows in packed.seeds.items():
        _write_seed(root / "seeds" / ("policy" if name in POLICY else "reference") / f"{name}.csv", name, rows)


def _landing(table: str, day: date, rows: list[Row]) -> Row:
    digest = hashlib.sha256("\n".join(sorted(map(repr, rows))).encode()).hexdigest()
    counts = {"rows": len(rows), "quarantined": 0}
    return {"source": SOURCE, "table_name": table, **counts, "content_hash": digest, "date": day}


def _write(path: Path, rows: list[Row], schema: pa.Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _write_seed(path: Path, name: str, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SEED_COLUMNS[name])
        writer.writerows([[_cell(row[column]) for column in SEED_COLUMNS[name]] for row in rows])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}"  # never 1E-9, which is no number to the seeds
    return "" if value is None else str(value)
