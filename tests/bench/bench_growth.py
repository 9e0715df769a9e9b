"""How time and memory grow with days, GPUs and teams, and that a day costs the same however long the history is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.bench.bench_pipeline import forget_warehouse, land_world, prepare_empty
from tests.bench.measuring import HEADER, Measured, Section, measure
from tests.bench.world import FIRST_DAY, LARGE, STANDARD, World

ONE_DAY = replace(STANDARD, days=1, jobs=STANDARD.jobs // STANDARD.days, lines=STANDARD.lines // STANDARD.days)
DAYS = {1: ONE_DAY, 7: STANDARD, 28: LARGE}
GPUS = {
    gpus: replace(ONE_DAY, gpus=gpus, jobs=ONE_DAY.jobs * gpus // 2_000, lines=ONE_DAY.lines * gpus // 2_000)
    for gpus in (500, 2_000, 8_000)
}
TEAMS = {teams: replace(ONE_DAY, teams=teams) for teams in (10, 100, 1_000)}
MOST_GROWTH = 1.1
"""Times the growth of the input: nothing may be worse than linear."""
SMALL = World(gpus=400, days=8, jobs=40_000, lines=60_000)
HISTORIES = (7, 365)


def bench_growth(folder: Path) -> Section:
    section = Section()
    empty = prepare_empty(folder, ONE_DAY)
    fixed = section.take("empty", measure("fixed: start and models", "build", empty, FIRST_DAY, 1, "models", rows=0))
    built: dict[World, Measured] = {}
    for what, worlds in (("days", DAYS), ("GPUs", GPUS), ("teams", TEAMS)):
        for size, world in worlds.items():
            if world not in built:
                place = land_world(folder, world, Section())
                forget_warehouse(place)
                built[world] = measure("", "build", place, FIRST_DAY, world.days, "models", rows=world.samples)
            section.take(f"{what} {size}", replace(built[world], name=f"{size:,} {what}"))
        for small, large in zip(worlds, list(worlds)[1:], strict=False):
            grown = [built[worlds[size]].cpu - fixed.cpu for size in (small, large)]
            name = f"{large:,} {what} / {small:,}: CPU that grows"
            section.ratio(name, grown[1] / grown[0], most=MOST_GROWTH * large / small)
    return section


def bench_history(folder: Path) -> Section:
    """The eighth day, after a week and after a year. Models alone: tests would say that copied facts tie to no bill."""
    section = Section()
    place = land_world(folder, SMALL, Section())
    forget_warehouse(place)
    measure("the week before", "build", place, FIRST_DAY, SMALL.days, "tests")
    day = SMALL.dates[-1]
    print(HEADER)
    for history in HISTORIES:
        measure("history", "stretch_history", place, history)
        name = f"one day after {history} days, models"
        section.take(str(history), measure(name, "build", place, day, 1, "models", rows=SMALL.samples // SMALL.days))
    after_week, after_year = (section.measured[str(history)].cpu for history in HISTORIES)
    section.ratio("one day after a year / after a week", after_year / after_week, most=1.2)
    return section
