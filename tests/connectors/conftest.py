"""A workspace on disk that tests deliver files to, land and look at."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orchestration.landing.days import ensure_schema_files
from orchestration.landing.loader import land
from orchestration.landing.report import LandingReport
from orchestration.landing.touched import Cursor, touched_days
from orchestration.settings import Source, load_sources

SHARED = Path(__file__).parents[3] / "shared" / "data"


def day(text: str) -> date:
    return date.fromisoformat(text)


@dataclass
class Workspace:
    root: Path

    @property
    def data(self) -> Path:
        return self.root / "data"

    def deliver(self, name: str, content: str | bytes | pa.Table, mtime: str = "2026-03-01T00:00:00") -> Path:
        path = self.data / "inbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, pa.Table):
            pq.write_table(content, path)
        else:
            raw = content.encode() if isinstance(content, str) else content
            path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        at = int(datetime.fromisoformat(mtime).replace(tzinfo=UTC).timestamp())
        os.utime(path, (at, at))
        return path

    def source(self, **settings: Any) -> Source:
        lines = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in {"name": "src", **settings}.items())
        path = self.root / "sources.yml"
        path.write_text("sources:\n  -\n" + lines)
        return load_sources(path, self.data)[0]

    def land(self, source: Source, start: str, end: str) -> LandingReport:
        report = land(source, day(start), day(end), self.data)
        for table in report.tables.values():
            parts = (table.landed, table.quarantined, table.skipped, table.superseded, table.outside)
            assert table.read == sum(parts), f"rows were lost: {table}"
        return report

    def touched(self, source: Source, since: Cursor | None = None) -> tuple[list[str], Cursor]:
        days, cursor = touched_days(source, self.data, since or Cursor())
        return sorted(str(day) for day in days), Cursor.loads(cursor.dumps())

    def query(self, sql: str) -> list[tuple]:
        """SQL in which `{jobs}` is that landing table, read as dbt reads it."""
        ensure_schema_files(self.data)
        tables = {
            path.name: f"read_parquet('{path}/date=*/*.parquet', hive_partitioning = true)"
            for path in (self.data / "landing").iterdir()
        }
        with duckdb.connect() as con:
            con.execute("set TimeZone = 'UTC'")
            return con.execute(sql.format(**tables)).fetchall()

    def days(self, table: str) -> list[str]:
        return [str(d) for (d,) in self.query(f"select distinct date from {{{table}}} order by 1")]

    def quarantined(self) -> list[tuple[int, str]]:
        found = self.data.glob("quarantine/*/*.jsonl")
        rows = [row for path in sorted(found) for row in _json_lines(path)]
        return [(row["line"], row["reason"]) for row in rows]

    def snapshot(self) -> dict[str, list[tuple]]:
        """Every landed row, for comparing whole states; the history of deliveries is no state, it only grows."""
        names = [path.name for path in (self.data / "landing").iterdir() if path.name[0] != "_"]
        names.remove("deliveries")
        return {name: self.query(f"select * from {{{name}}} order by all") for name in names}


def _json_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path)
    made.data.mkdir()
    ensure_schema_files(made.data)
    return made


@pytest.fixture
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the folder of real samples (../shared/data) is not here")
    return SHARED
