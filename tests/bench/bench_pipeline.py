"""The whole pipeline on a large company, against what reading the samples must cost and against hand-written peers.

All read the same landed files. What the pipeline takes on the same days of an empty company (start, models, tests) is
measured too: the rest is what grows with the data.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path

from tests.bench.measuring import HEADER, Measured, measure
from tests.bench.world import FIRST_DAY, World

SOURCES = ("cloud", "titan", "titan_gpus", "nodes")
LARGEST_FOR_PANDAS = 45_000_000
"""Samples; beyond, a naive script does not fit into the memory of most machines."""


def bench_pipeline(folder: Path, world: World) -> tuple[dict[str, object], list[str]]:
    place = folder / world.name
    parameters = json.dumps(asdict(world))
    print(f"company of {world.gpus:,} GPUs, {world.days} days, {world.samples:,} samples, in {place}", flush=True)
    measure("generating", "write_world", place, parameters)
    found: dict[str, Measured] = {}

    def take(key: str, name: str, job: str, *arguments: object, rows: int = world.samples) -> Measured:
        found[key] = measure(name, job, *arguments, rows=rows)
        print(found[key], flush=True)
        return found[key]

    days = (FIRST_DAY, world.days)
    print(HEADER)
    for source in SOURCES:
        found[f"land {source}"] = measure(f"landing {source}", "land", place, source, *days)
        print(found[f"land {source}"], flush=True)
    take("scan", "(a) scan floor", "peer", "floors", "scan", place, *days)
    take("roll_up", "(b) roll-up floor", "peer", "floors", "roll_up", place, *days)
    take("script", "(c) hand-written exact DuckDB script", "peer", "peer_duckdb", "run", place, *days)
    take("polars", "(d) Polars script, floating point", "peer", "peer_polars", "run", place, *days)
    if world.samples <= LARGEST_FOR_PANDAS:
        take("pandas", "(e) pandas script, floating point", "peer", "peer_pandas", "run", place, *days)
    empty = folder / f"empty-{world.teams}teams"
    measure("generating", "write_empty_world", empty, parameters)
    for workspace in (empty, place):
        measure("parsing", "prepare", workspace)
        shutil.rmtree(workspace / "data" / "dbt" / "scratch", ignore_errors=True)
        for leftover in workspace.glob("data/warehouse.duckdb*"):
            leftover.unlink()
    measure("first time", "build", empty, *days, "tests")
    take("start", "fixed: start", "start", empty, rows=0)
    take("empty", "fixed: start and models", "build", empty, *days, "models", rows=0)
    take("empty with tests", "fixed: start, models and tests", "build", empty, *days, "tests", rows=0)
    take("models", "(f) Apportion, models", "build", place, *days, "models")
    take("tests", "(f) Apportion, models and tests, again", "build", place, *days, "tests")
    take(
        "day", "(g) one restated day, models", "build", place, FIRST_DAY, 1, "models", rows=world.samples // world.days
    )
    growing = found["models"].cpu - found["empty"].cpu
    ratios = {
        "growing CPU s": growing,
        "growing / roll-up floor": growing / found["roll_up"].cpu,
        "growing / hand-written script": growing / found["script"].cpu,
        "growing / Polars": growing / found["polars"].cpu,
        **({"pandas / growing": found["pandas"].cpu / growing} if "pandas" in found else {}),
        "fixed start and models, CPU s": found["empty"].cpu,
        "restated day / all days": found["day"].cpu / found["models"].cpu,
    }
    for name, value in ratios.items():
        print(f"{name}: {value:.2f}")
    measured = {key: one.as_record() for key, one in found.items()}
    return {"world": asdict(world), "measured": measured, "ratios": ratios}, []
