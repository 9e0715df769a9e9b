"""The DuckDB session that reads deliveries: in memory, bounded, in UTC."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

MEMORY_LIMIT = "550MB"
"""Enough to sort the days that are written at once; what is larger spills to disk, so that a big file costs time and
not the machine."""
THREADS = 4


@contextmanager
def session(data_dir: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    spill = data_dir / "landing" / f"_spill-{os.getpid()}"
    spill.parent.mkdir(parents=True, exist_ok=True)  # DuckDB makes the folder itself, but not the one above it
    con = duckdb.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": min(THREADS, os.cpu_count() or 1),
            "temp_directory": str(spill),
        }
    )
    try:
        con.execute("set global TimeZone = 'UTC'; set enable_progress_bar = false")  # also for cursors
        yield con
    finally:
        con.close()
        shutil.rmtree(spill, ignore_errors=True)
