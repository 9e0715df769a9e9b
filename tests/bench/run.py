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

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.bench_bill import bench_bill
from tests.bench.bench_pipeline import bench_pipeline
from tests.bench.world import LARGE, STANDARD

SECTIONS = ("bill", "standard", "large")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", default=["bill", "standard"], help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--lines", type=int, default=5_000_000, help="of the bill")
    parser.add_argument("--folder", type=Path, default=Path("data") / "bench", help="where generated files are kept")
    given = parser.parse_args()
    folder = given.folder.resolve()
    wrong = []
    for section in given.sections:
        if section == "bill":
            found, broken = bench_bill(folder, given.lines)
        else:
            found, broken = bench_pipeline(folder, {"standard": STANDARD, "large": LARGE}[section])
        _keep(folder / "results.json", section, found)
        wrong += broken
    if wrong:
        sys.exit("\n".join(f"broken: {bound}" for bound in wrong))


def _keep(results: Path, section: str, found: dict[str, object]) -> None:
    kept = json.loads(results.read_text()) if results.exists() else {}
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {gib:.0f} GiB, {platform.system()}, Python {platform.python_version()}"
    kept[section] = {"machine": machine, "at": datetime.now(UTC).date().isoformat(), **found}
    results.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
