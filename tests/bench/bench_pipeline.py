"""The whole pipeline on a large company, against what reading the samples must cost and against hand-written peers.

All read the same landed files. What the pipeline takes on the same days of an empty company (start, models, tests) is
measured too: the rest is what grows with the data.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.bench.measuring import HEADER, Measured, Section, least, measure
from tests.bench.world import FIRST_DAY, World

SOURCES = ("cloud", "titan", "titan_gpus", "nodes")
LARGEST_FOR_PANDAS = 45_000_000
"""Samples; beyond, a naive script does not fit into the memory of most machines."""
MOST_FIXED_CPU = 15
MOST_MEMORY = 2_000_000_000
TIMES = 3
"""What does not take long is measured so often, and the least counts: single runs differ by a tenth."""


def bench_pipeline(folder: Path, world: World, standard: dict[str, Any] | None = None) -> Section:
    """`standard`: what was measured of the standard company, to compare a larger one with."""
    section = Section()
    place = land_world(folder, world, section)
    days = (FIRST_DAY, world.days)
    peers = {
        "scan": ("(a) scan floor", "floors", "scan"),
        "roll_up": ("(b) roll-up floor", "floors", "roll_up"),
        "amounts": ("(b2) split floor: amounts alone, no telemetry", "peer_duckdb", "amounts"),
        "script": ("(c) hand-written exact DuckDB script", "peer_duckdb", "run"),
        "polars": ("(d) Polars script, floating point", "peer_polars", "run"),
        "pandas": ("(e) pandas script, floating point", "peer_pandas", "run"),
    }
    times = TIMES if world.samples <= LARGEST_FOR_PANDAS else 1
    if world.samples > LARGEST_FOR_PANDAS:
        del peers["pandas"]

    def take(key: str, name: str, *job: object, rows: int = 0, times: int = times) -> Measured:
        return section.take(key, least(times, lambda: measure(name, *job, rows=rows)))

    for key, (name, module, function) in peers.items():
        take(key, name, "peer", module, function, place, *days, rows=world.samples)
    empty = prepare_empty(folder, world)
    take("start", "fixed: start", "start", empty, times=TIMES)
    take("empty", "fixed: start and models", "build", empty, *days, "models", times=TIMES)
    take("empty with tests", "fixed: start, models and tests", "build", empty, *days, "tests", times=TIMES)

    def build_anew() -> Measured:
        forget_warehouse(place)
        return measure("(f) Apportion, models", "build", place, *days, "models", rows=world.samples)

    models = section.take("models", least(times, build_anew))
    take("tests", "(f) Apportion, models and tests, again", "build", place, *days, "tests", rows=world.samples)
    a_day = world.samples // world.days
    restated = take("day", "(g) one restated day, models", "build", place, FIRST_DAY, 1, "models", rows=a_day)

    found = section.measured
    growing = models.cpu - found["empty"].cpu
    section.ratio("growing CPU s", growing)
    section.ratio("growing / roll-up floor", growing / found["roll_up"].cpu, most=3)
    section.ratio("growing / hand-written script", growing / found["script"].cpu, most=1.5)
    section.ratio("growing / Polars", growing / found["polars"].cpu, most=1)
    if "pandas" in found:
        section.ratio("pandas / growing", found["pandas"].cpu / growing, least=10)
        section.ratio("memory: pandas / Apportion", found["pandas"].memory / models.memory, least=10)
    section.ratio("fixed start and models, CPU s", found["empty"].cpu, most=MOST_FIXED_CPU)
    section.ratio("peak memory of the models, GB", models.memory / 1e9, most=MOST_MEMORY / 1e9)
    section.ratio("restated day / all days", restated.cpu / models.cpu)
    if standard:
        earlier = standard["measured"]["models"]
        section.ratio("this / standard, CPU", models.cpu / earlier["cpu"], most=4.2)
        section.ratio("this / standard, memory", models.memory / earlier["memory"], most=1.2)
    return section


def land_world(folder: Path, world: World, section: Section) -> Path:
    """The company with everything landed; returns its folder."""
    place = folder / world.name
    print(f"company of {world.gpus:,} GPUs, {world.days} days, {world.samples:,} samples, in {place}", flush=True)
    measure("generating", "write_world", place, json.dumps(asdict(world)))
    measure("parsing", "prepare", place)
    print(HEADER)
    for source in SOURCES:
        section.take(f"land {source}", measure(f"landing {source}", "land", place, source, FIRST_DAY, world.days))
    return place


def prepare_empty(folder: Path, world: World) -> Path:
    """The same company on days of which nothing has been delivered, built once so that its tables are there."""
    empty = folder / f"empty-{world.teams}teams"
    measure("generating", "write_empty_world", empty, json.dumps(asdict(world)))
    measure("parsing", "prepare", empty)
    forget_warehouse(empty)
    measure("first time", "build", empty, FIRST_DAY, world.days, "tests")
    return empty


def forget_warehouse(workspace: Path) -> None:
    shutil.rmtree(workspace / "data" / "dbt" / "scratch", ignore_errors=True)
    for leftover in workspace.glob("data/warehouse.duckdb*"):
        leftover.unlink()
