"""The ledger as landing tables, for the models: a copy that can be made again at any time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.landing.days import SCHEMA_DAY
from orchestration.landing.schemas import CLOSED_DAYS_SCHEMA, CLOSED_LINES_SCHEMA, RETROACTIVE_DAYS_SCHEMA
from orchestration.ledger.book import closes, require_intact, retroactive_days


def land_ledger(data: Path) -> None:
    """Makes the landing tables say what the ledger says. Refuses a ledger that was tampered with."""
    require_intact(data)
    lines, days = _Table(data, "closed_lines", CLOSED_LINES_SCHEMA), _Table(data, "closed_days", CLOSED_DAYS_SCHEMA)
    for close in closes(data):
        # Named after the content, so that a file which is there already is the right one.
        name = f"close-{close.number:04d}-{close.content_hash[:12]}"
        lines.keep(name, close.period, lambda close=close: close.lines)
        days.keep(name, close.period, lambda close=close: [{"close_number": close.number, **row} for row in close.days])
    let_in = _Table(data, "retroactive_days", RETROACTIVE_DAYS_SCHEMA)
    by_day: dict[date, list[Mapping]] = {}
    for row in retroactive_days(data):
        by_day.setdefault(datetime.fromisoformat(row["recorded_at"]).date(), []).append(row)
    for day, rows in by_day.items():
        content = hashlib.sha256(repr(rows).encode()).hexdigest()
        let_in.keep(f"retroactive-{content[:12]}", day, lambda rows=rows: rows)
    for table in (lines, days, let_in):
        table.forget_others()


class _Table:
    def __init__(self, data: Path, name: str, schema: pa.Schema) -> None:
        self._folder, self._schema = data / "landing" / name, schema
        self._kept: set[Path] = set()

    def keep(self, name: str, day: date, rows: Callable[[], Iterable[Mapping]]) -> None:
        target = self._folder / f"date={day}" / f"{name}.parquet"
        self._kept.add(target)
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        typed = [
            {field.name: _typed(row.get(field.name), field.type) for field in self._schema} | {"date": day}
            for row in rows()
        ]
        beside = target.with_name(f"{target.name}.tmp-{os.getpid()}")
        pq.write_table(pa.Table.from_pylist(typed, self._schema), beside)
        os.replace(beside, target)

    def forget_others(self) -> None:
        for file in self._folder.glob("date=*/*"):
            if file not in self._kept and file.parent.name != SCHEMA_DAY:
                file.unlink()


def _typed(text: Any, kind: pa.DataType) -> Any:
    if text in (None, ""):
        return None
    if pa.types.is_decimal(kind):
        return Decimal(text)
    if pa.types.is_timestamp(kind):
        return datetime.fromisoformat(text).astimezone(UTC)
    if pa.types.is_date(kind):
        return date.fromisoformat(text)
    if pa.types.is_integer(kind):
        return int(text)
    return str(text)
