"""Measuring jobs, each in a process of its own: time, processor time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
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
    said, found = _run(name, [sys.executable, HERE / "jobs.py", job, *map(str, arguments)])
    told = json.loads(said or b"{}")
    return replace(found, rows=told.get("rows", 0) if rows is None else rows, wall=told.get("wall", found.wall))


def least(times: int, again: Callable[[], Measured]) -> Measured:
    """The run that took the least processor time: what else the machine does only ever adds to it."""
    return min((again() for _ in range(times)), key=lambda found: found.cpu)


def measure_command(name: str, command: Sequence[object], environment: Mapping[str, str]) -> Measured:
    """A command as its user waits for it, from its start to its end."""
    return _run(name, command, environment)[1]


def _run(name: str, command: Sequence[object], environment: Mapping[str, str] | None = None) -> tuple[bytes, Measured]:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1]), **(environment or {})}
    began = time.perf_counter()
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, env=environment) as run:
        said = run.stdout.read() if run.stdout else b""
        _, status, used = os.wait4(run.pid, 0)
        run.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - began
    if run.returncode:
        sys.exit(f"{name}: failed")
    unit = 1 if sys.platform == "darwin" else 1024
    return said, Measured(name, 0, wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


@dataclass
class Section:
    """What one part of the benchmark has found: measured things, ratios between them, and bounds that are broken."""

    measured: dict[str, Measured] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def take(self, key: str, found: Measured) -> Measured:
        self.measured[key] = found
        print(found, flush=True)
        return found

    def ratio(self, name: str, value: float, most: float | None = None, least: float | None = None) -> None:
        """Keeps a ratio; where a bound is given, says whether it holds."""
        bound = f"at most {most:g}" if most is not None else f"at least {least:g}" if least is not None else ""
        is_broken = (most is not None and value > most) or (least is not None and value < least)
        named = f"{name} ({bound})" if bound else name
        self.ratios[named] = value
        print(f"{named}: {value:.2f}{'  BROKEN' if is_broken else ''}", flush=True)
        if is_broken:
            self.broken.append(f"{name} is {value:.2f}, not {bound}")

    def as_record(self) -> dict[str, object]:
        return {
            "measured": {key: one.as_record() for key, one in self.measured.items()},
            "ratios": self.ratios,
            "broken": self.broken,
        }
