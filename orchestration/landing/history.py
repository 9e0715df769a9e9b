"""The history of deliveries: which file came when, with what hash, for which period, and with what total.

Kept when the file leaves the inbox and when a newer one replaces it, because it is what explains why the books of a
month changed. Nothing in the books depends on it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.connectors.base import Delivery, Feed
from orchestration.landing.schemas import DELIVERIES_SCHEMA

Fact = dict[str, object]
"""A row of DELIVERIES_SCHEMA: what one delivery says of one invoice and period."""


def content_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def facts(
    source: str, feed: Feed, delivery: Delivery, file_hash: str, variant: str | None, parts: Sequence[Fact], bad: int
) -> list[Fact]:
    """Rows for one delivery; what could not be read is counted on the first of them."""
    common: Fact = {
        "source": source,
        "table_name": feed.table,
        "delivery": delivery.name,
        "delivered_at": delivery.delivered_at.astimezone(UTC),
        "content_hash": file_hash,
        "size_bytes": delivery.size,
        "variant": variant,
        "stream": feed.stream(delivery) if feed.stream else "",
        "date": delivery.delivered_at.astimezone(UTC).date(),
    }
    return [{**common, **part, "quarantined": 0 if place else bad} for place, part in enumerate(parts)]


def record(data_dir: Path, source: str, found: Sequence[Fact]) -> None:
    """Adds what is new; the same file read again says the same and stays one."""
    by_day: dict[date, list[Fact]] = {}
    for fact in found:
        by_day.setdefault(fact["date"], []).append(fact)  # type: ignore[arg-type]
    for day, rows in by_day.items():
        target = data_dir / "landing" / "deliveries" / f"date={day}" / f"{source}.parquet"
        new = {_identity(row) for row in rows}
        known = [row for row in _read(target) if _identity(row) not in new]
        everything = sorted([*known, *rows], key=_order)
        if everything == known:
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f"{target.name}.tmp-{os.getpid()}")
        pq.write_table(pa.Table.from_pylist(everything, DELIVERIES_SCHEMA), beside)
        os.replace(beside, target)


def _identity(row: Fact) -> tuple:
    """A delivery is known by its name and its time: with other content, it has been corrected in its place."""
    return row["table_name"], row["delivery"], row["delivered_at"]


def _order(row: Fact) -> tuple:
    parts = ("provider", "invoice_id", "period_start_date", "period_end_date", "currency")
    return str(row["delivered_at"]), *_identity(row), *(str(row.get(name)) for name in parts)


def _read(target: Path) -> list[Fact]:
    if not target.exists():
        return []
    try:
        return pq.read_table(target, schema=DELIVERIES_SCHEMA, partitioning=None).to_pylist()
    except pa.ArrowException:
        return []  # of another version: what is in the inbox is read and recorded again
