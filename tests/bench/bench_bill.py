"""A month's bill from CSV to its days, against DuckDB alone."""

from __future__ import annotations

from pathlib import Path

from tests.bench.measuring import HEADER, measure

LEAST_SPEED = 1 / 3
"""Of the speed at which DuckDB alone converts the same file to Parquet."""
MOST_MEMORY = 1_000_000_000


def bench_bill(folder: Path, lines: int) -> tuple[dict[str, object], list[str]]:
    """What was measured, and what is wrong with it."""
    bill = folder / f"cur-{lines}" / "bill.csv"
    if not bill.exists():
        print(f"generating {lines:,} lines in {bill} …", flush=True)
        bill.parent.mkdir(parents=True, exist_ok=True)
        beside = bill.with_suffix(".new")
        measure("generating", "write_bill", beside, lines)
        beside.rename(bill)
    print(HEADER)
    alone = measure("AWS CUR, DuckDB alone: CSV to Parquet", "convert", bill)
    print(alone, flush=True)
    landed = measure("AWS CUR, landed", "land_bill", bill)
    print(landed)
    speed = alone.wall / landed.wall
    print(f"speed of landing: {speed:.2f} of DuckDB alone (at least {LEAST_SPEED:.2f});", end=" ")
    print(f"memory: {landed.memory / 1e6:,.0f} MB (less than {MOST_MEMORY / 1e6:,.0f} MB)")
    wrong = []
    if landed.rows != lines or alone.rows != lines:
        wrong.append(f"of {lines} lines, DuckDB read {alone.rows} and {landed.rows} were landed")
    if speed < LEAST_SPEED:
        wrong.append(f"landing has {speed:.2f} of the speed of DuckDB alone, less than {LEAST_SPEED:.2f}")
    if landed.memory >= MOST_MEMORY:
        wrong.append(f"landing needs {landed.memory / 1e6:,.0f} MB, not less than {MOST_MEMORY / 1e6:,.0f} MB")
    return {"rows": [alone.as_record(), landed.as_record()], "speed": speed}, wrong
