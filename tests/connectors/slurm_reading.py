"""Reads single files of Slurm as landing does, but without a workspace: hundreds of variants in a few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from orchestration.connectors import feeds
from orchestration.connectors.base import Found, Reading
from orchestration.landing.deliveries import delivery
from orchestration.landing.stage import register_deliveries
from orchestration.settings import SlurmSource

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    reading: Reading
    good: list[Row]
    skipped: list[tuple[int, str]]
    bad: list[tuple[int, str]]
    """Rejects and bad rows alike, in the order of their lines."""

    @property
    def found(self) -> Found:
        (found,) = self.reading.found
        return found


def read(path: Path, kind: str = "jobs", **settings: Any) -> Outcome:
    """Reads one file, and checks that every record of it became exactly one thing."""
    patterns = {"jobs": str(path), kind: str(path)}
    source = SlurmSource(
        **{"name": "s", "area": "scheduler", "kind": "slurm", "cluster": "c", "timezone": "UTC", **patterns, **settings}
    )
    feed = feeds(source)[-1]
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        found = delivery(path, path.parent)
        register_deliveries(con, [found], [0], feed)
        reading = feed.read(con, [found])
        table = con.sql(f"select * from ({reading.rows}) order by line").to_arrow_table()
    rows = table.to_pylist()
    bad = [(row["line"], row["bad_reason"]) for row in rows if row["bad_reason"]]
    bad += [(reject.line, reject.reason) for reject in reading.rejects]
    skipped = [(row["line"], row["skip_reason"]) for row in rows if row["skip_reason"] and not row["bad_reason"]]
    good = [row for row in rows if not row["bad_reason"] and not row["skip_reason"]]
    lines = {row["line"] for row in rows}
    assert reading.counts == [len(lines) + len(reading.rejects)], "records were lost"
    assert not lines & {reject.line for reject in reading.rejects}
    assert all(reason for _, reason in bad)
    return Outcome(reading, good, skipped, sorted(bad))


def held_seconds(rows: Sequence[Row]) -> tuple[int, int, int]:
    """GPU-seconds, core-seconds and seconds of the jobs that have ended."""
    lasted = [(row, int((row["end_at"] - row["start_at"]).total_seconds())) for row in rows if row["end_at"]]
    gpus = sum(row["gpu_units"] * seconds for row, seconds in lasted)
    cores = sum(row["cpu_millicores"] * seconds for row, seconds in lasted)
    assert gpus % 25_200 == cores % 1_000 == 0
    return gpus // 25_200, cores // 1_000, sum(seconds for _, seconds in lasted)
