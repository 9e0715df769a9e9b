"""Benchmarks: how much time and memory large inputs take, compared with others in the same run.

`make bench` prints tables, keeps what it measured in data/bench/results.json and fails if a bound is broken. Everything
that is measured runs in a process of its own, and what counts are ratios: a slow machine is slow for all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench_bill import bench_bill
from tests.bench.bench_growth import bench_growth, bench_history
from tests.bench.bench_ingestion import bench_ingestion
from tests.bench.bench_latency import bench_latency
from tests.bench.bench_pipeline import bench_pipeline
from tests.bench.measuring import Section
from tests.bench.world import LARGE, STANDARD

SECTIONS = ("bill", "ingestion", "standard", "large", "growth", "history", "latency")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=["bill", "standard"], help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--lines", type=int, default=5_000_000, help="of the bill")
    parser.add_argument("--folder", type=Path, default=Path("data") / "bench", help="where generated files are kept")
    given = parser.parse_args()
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"there is no section {', '.join(sorted(unknown))}; choose from {', '.join(SECTIONS)}")
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.json"
    broken = []
    for name in given.sections:
        kept = json.loads(results.read_text()) if results.exists() else {}
        section = _bench(name, folder, given.lines, kept)
        results.write_text(json.dumps({**kept, name: {**_machine(), **section.as_record()}}, indent=2) + "\n")
        broken += [f"{name}: {bound}" for bound in section.broken]
    if broken:
        sys.exit("\n".join(f"broken: {bound}" for bound in broken))


def _bench(name: str, folder: Path, lines: int, kept: dict[str, Any]) -> Section:
    match name:
        case "bill":
            return bench_bill(folder, lines)
        case "ingestion":
            return bench_ingestion(folder)
        case "standard":
            return bench_pipeline(folder, STANDARD)
        case "large":
            return bench_pipeline(folder, LARGE, kept.get("standard"))
        case "growth":
            return bench_growth(folder)
        case "history":
            return bench_history(folder)
        case _:
            return bench_latency(folder)


def _machine() -> dict[str, str]:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {gib:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    return {"machine": machine, "at": datetime.now(UTC).date().isoformat()}


if __name__ == "__main__":
    main()
