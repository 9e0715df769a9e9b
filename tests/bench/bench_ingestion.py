"""How fast each connector reads, beside DuckDB turning the same files into Parquet.

The standard company's own files, and one file of every other kind that can be large. Where DuckDB cannot read a format
(scrapes), it reads the lines as text. Times are of whole processes: start, reading, sorting into days, Parquet.
"""

from __future__ import annotations

from pathlib import Path

from tests.bench.bench_pipeline import SOURCES, land_world
from tests.bench.exports import EXPORTS
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
    exports = folder / "exports"
    exports.mkdir(exist_ok=True)
    for key, export in EXPORTS.items():
        file = write_export(exports, key)
        section.take(f"land {key}", measure(f"landing {export.name}", "land_export", key, file))
        section.take(f"alone {key}", measure(f"{export.name}: DuckDB alone", "read_alone", key, file))
    names = {source: FILES[source][0] for source in SOURCES} | {key: EXPORTS[key].name for key in EXPORTS}
    for key, name in names.items():
        alone, landed = section.measured[f"alone {key}"], section.measured[f"land {key}"]
        section.ratio(f"{name}: speed of landing / DuckDB alone", alone.wall / landed.wall)
    return section


def write_export(folder: Path, key: str) -> Path:
    """The file of an export, unless it is there."""
    file = folder / EXPORTS[key].file
    if not file.exists():
        beside = file.with_name(f"new-{file.name}")
        measure("generating", "write_export", key, beside)
        beside.rename(file)
    return file
