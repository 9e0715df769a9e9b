"""What benchmarks run, each in a process of its own: `jobs.py <job> <arguments>`; says what it did as JSON."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path


def generate(target: str, lines: str) -> int:
    from bill import write_bill

    write_bill(Path(target), int(lines))
    return int(lines)


def convert(bill: str) -> int:
    """What DuckDB does by itself: every column as text, with as many threads as landing has and defaults otherwise."""
    import duckdb

    from orchestration.landing.engine import THREADS

    with (
        tempfile.TemporaryDirectory(dir=Path(bill).parent) as scratch,
        duckdb.connect(config={"threads": min(THREADS, os.cpu_count() or 1)}) as con,
    ):
        target = f"{scratch}/bill.parquet"
        con.execute(f"copy (from read_csv('{bill}', all_varchar = true)) to '{target}'")
        return con.execute(f"select count(*) from '{target}'").fetchall()[0][0]


def land(bill: str) -> int:
    """The whole month, into an empty workspace."""
    from bill import MONTH

    from orchestration.landing.loader import land
    from orchestration.settings import load_sources

    workspace = Path(tempfile.mkdtemp(dir=Path(bill).parent))
    try:
        sources = workspace / "sources.yml"
        sources.write_text(f"sources: [{{name: bench, area: billing, kind: aws_cur, path: '{bill}'}}]\n")
        (source,) = load_sources(sources, workspace)
        since, until = map(date.fromisoformat, MONTH)
        return land(source, since, until, workspace).tables["charges"].landed
    finally:
        shutil.rmtree(workspace)


if __name__ == "__main__":
    job, *arguments = sys.argv[1:]
    began = time.perf_counter()
    rows = {"generate": generate, "convert": convert, "land": land}[job](*arguments)
    print(json.dumps({"rows": rows, "wall": time.perf_counter() - began}))
