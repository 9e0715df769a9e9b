"""Measuring jobs, each in a process of its own: time, processor time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Measured:
    name: str
    rows: int
    wall: float
    cpu: float
    memory: int

    def __str__(self) -> str:
        cells = (f"{self.rows:,}", f"{self.wall:.1f}", f"{self.cpu:.1f}", f"{self.rows / self.wall:,.0f}")
        return row(self.name, *cells, f"{self.memory / 1e6:,.0f}")

    def as_record(self) -> dict[str, object]:
        return asdict(self)


def row(name: str, *cells: str) -> str:
    return f"{name:<44}" + "".join(f"{cell:>12}" for cell in cells)


HEADER = row("", "rows", "wall s", "CPU s", "rows/s", "peak MB")


def measure(name: str, job: str, *arguments: object, rows: int | None = None) -> Measured:
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
        name,
        found.get("rows", 0) if rows is None else rows,
        found.get("wall", wall),
        used.ru_utime + used.ru_stime,
        used.ru_maxrss * unit,
    )
