"""Bad rows, kept where somebody can look at them: `quarantine/<source>/<file>.jsonl`.

One file per delivery, replaced whenever the delivery is read again, so the folder always shows what is wrong
with what is in the inbox now.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery
from orchestration.connectors.sql import file_literal
from orchestration.connectors.text import raw_lines

MOST_KEPT = 10_000
"""Rows kept per file; beyond that the file as a whole is the problem."""


@dataclass(frozen=True)
class BadRow:
    line: int
    reason: str
    raw: str | None = None
    """None: to be looked up in the file."""


def write(con: DuckDBPyConnection, folder: Path, table: str, delivery: Delivery, bad: list[BadRow], total: int) -> None:
    """Replaces the record of what is wrong with one delivery; nothing wrong, no file."""
    target = folder / file_name(delivery)
    if not bad:
        target.unlink(missing_ok=True)
        return
    texts = _texts(con, delivery, {row.line for row in bad if row.raw is None})
    lines = [
        {
            "file": str(delivery.path),
            "table": table,
            "line": row.line,
            "reason": row.reason,
            "raw": row.raw or texts.get(row.line),
        }
        for row in bad
    ]
    if total > len(bad):
        lines.append({"file": str(delivery.path), "table": table, "reason": f"{total - len(bad)} more rows"})
    folder.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}.tmp-{os.getpid()}")
    beside.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    os.replace(beside, target)


def file_name(delivery: Delivery) -> str:
    return f"{delivery.name.replace('/', '__')}.jsonl"


def forget_all_but(folder: Path, names: Iterable[str]) -> None:
    """Removes the records of deliveries that are gone, and what a killed run left half written."""
    keep = set(names)
    for path in folder.glob("*") if folder.is_dir() else ():
        if path.name not in keep:
            path.unlink(missing_ok=True)


def summary(data_dir: Path) -> dict[str, Counter[str]]:
    """Quarantined rows by source and file, as they stand."""
    found: dict[str, Counter[str]] = {}
    for path in sorted((data_dir / "quarantine").glob("*/*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            found.setdefault(path.parent.name, Counter())[path.name.removesuffix(".jsonl")] = sum(1 for _ in lines)
    return found


def _texts(con: DuckDBPyConnection, delivery: Delivery, lines: set[int]) -> dict[int, str]:
    if not lines:
        return {}
    if delivery.path.suffix != ".parquet":
        return raw_lines(delivery.path, lines)
    wanted = ", ".join(str(line - 1) for line in sorted(lines))
    return dict(
        con.execute(
            f"select file_row_number + 1, cast(to_json(t) as varchar)"
            f" from read_parquet({file_literal(delivery.path)}, file_row_number = true) as t"
            f" where file_row_number in ({wanted})"
        ).fetchall()
    )
