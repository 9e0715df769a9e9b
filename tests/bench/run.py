"""Benchmarks: how fast and in how much memory large inputs are landed, compared with DuckDB alone in the same run.

`make bench` prints a table and fails if a bound is broken. Everything that is measured runs in a process of its own,
and what counts are ratios: a slow machine is slow for both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LEAST_SPEED = 1 / 3
"""Of the speed at which DuckDB alone converts the same file to Parquet."""
MOST_MEMORY = 1_000_000_000


@dataclass(frozen=True)
class Measured:
    name: str
    rows: int
    wall: float
    cpu: float
    memory: int

    def __str__(self) -> str:
        cells = (f"{self.rows:,}", f"{self.wall:.1f}", f"{self.cpu:.1f}", f"{self.rows / self.wall:,.0f}")
        return _row(self.name, *cells, f"{self.memory / 1e6:,.0f}")


def _row(name: str, *cells: str) -> str:
    return f"{name:<40}" + "".join(f"{cell:>12}" for cell in cells)


def measure(name: str, job: str, *arguments: str | Path) -> Measured:
    """Runs a job of jobs.py in its own process. This one stays small: a child's peak begins with its parent's size."""
    command = [sys.executable, HERE / "jobs.py", job, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as run:
        said = run.stdout.read() if run.stdout else b""
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if run.returncode:
        sys.exit(f"{name}: failed")
    unit = 1 if sys.platform == "darwin" else 1024
    found = json.loads(said or b"{}")
    return Measured(
        name, found.get("rows", 0), found.get("wall", wall), used.ru_utime + used.ru_stime, used.ru_maxrss * unit
    )


def bench_bill(folder: Path, lines: int) -> list[str]:
    """A month's bill from CSV to its days; returns what is wrong."""
    bill = folder / f"cur-{lines}" / "bill.csv"
    if not bill.exists():
        print(f"generating {lines:,} lines in {bill} …", flush=True)
        bill.parent.mkdir(parents=True, exist_ok=True)
        beside = bill.with_suffix(".new")
        measure("generating", "generate", beside, lines)
        beside.rename(bill)
    print(_row("", "rows", "wall s", "CPU s", "rows/s", "peak MB"))
    alone = measure("AWS CUR, DuckDB alone: CSV to Parquet", "convert", bill)
    print(alone, flush=True)
    landed = measure("AWS CUR, landed", "land", bill)
    print(landed)
    speed = alone.wall / landed.wall
    print(f"speed of landing: {speed:.2f} of DuckDB alone (at least {LEAST_SPEED:.2f});", end=" ")
    print(f"memory: {landed.memory / 1e6:,.0f} MB (less than {MOST_MEMORY / 1e6:,.0f} MB)")
    wrong = []
    if landed.rows != lines or alone.rows != lines:
        wrong.append(f"of {lines} lines, DuckDB read {alone.rows} and {landed.rows} were landed")
    if speed < LEAST_SPEED:
        wrong.append(f"landing has {speed:.2f} of the speed of DuckDB alone, less than {LEAST_SPEED:.2f}")
    if landed.memory >= MOST_MEMORY:
        wrong.append(f"landing needs {landed.memory / 1e6:,.0f} MB, not less than {MOST_MEMORY / 1e6:,.0f} MB")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=5_000_000, help="of the bill")
    parser.add_argument("--folder", type=Path, default=Path("data") / "bench", help="where generated files are kept")
    given = parser.parse_args()
    wrong = bench_bill(given.folder.resolve(), given.lines)
    if wrong:
        sys.exit("\n".join(f"broken: {bound}" for bound in wrong))


if __name__ == "__main__":
    main()
