"""A month's bill from CSV to its days, against DuckDB alone."""

from __future__ import annotations

from pathlib import Path

from tests.bench.measuring import HEADER, Section, measure

LEAST_SPEED = 1 / 3
"""Of the speed at which DuckDB alone converts the same file to Parquet."""
MOST_MEMORY = 1_000_000_000


def bench_bill(folder: Path, lines: int) -> Section:
    section = Section()
    bill = folder / f"cur-{lines}" / "bill.csv"
    if not bill.exists():
        print(f"generating {lines:,} lines in {bill} …", flush=True)
        bill.parent.mkdir(parents=True, exist_ok=True)
        beside = bill.with_suffix(".new")
        measure("generating", "write_bill", beside, lines)
        beside.rename(bill)
    print(HEADER)
    alone = section.take("alone", measure("AWS CUR, DuckDB alone: CSV to Parquet", "convert", bill, "csv"))
    landed = section.take("landed", measure("AWS CUR, landed", "land_bill", bill))
    section.ratio("speed of landing / DuckDB alone", alone.wall / landed.wall, least=round(LEAST_SPEED, 3))
    section.ratio("peak memory of landing, GB", landed.memory / 1e9, most=MOST_MEMORY / 1e9)
    if landed.rows != lines or alone.rows != lines:
        section.broken.append(f"of {lines} lines, DuckDB read {alone.rows} and {landed.rows} were landed")
    return section
