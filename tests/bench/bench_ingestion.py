"""How fast each connector reads, beside DuckDB turning the same files into Parquet."""

from __future__ import annotations

from pathlib import Path

from tests.bench.bench_pipeline import SOURCES, land_world
from tests.bench.measuring import Section, measure
from tests.bench.world import STANDARD

FILES = {
    "cloud": ("FOCUS, CSV", "bill_*.csv", "csv"),
    "titan": ("sacct, text", "sacct_*.psv", "csv"),
    "titan_gpus": ("DCGM samples, Parquet", "dcgm_*.parquet", "parquet"),
    "nodes": ("inventory, CSV", "nodes.csv", "csv"),
}


def bench_ingestion(folder: Path) -> Section:
    section = Section()
    place = land_world(folder, STANDARD, section)
    for source in SOURCES:
        name, files, kind = FILES[source]
        alone = measure(f"{name}: DuckDB alone to Parquet", "convert", place / "inbox" / files, kind)
        section.take(f"alone {source}", alone)
    for source in SOURCES:
        alone, landed = section.measured[f"alone {source}"], section.measured[f"land {source}"]
        section.ratio(f"{FILES[source][0]}: speed of landing / DuckDB alone", alone.wall / landed.wall)
    return section
