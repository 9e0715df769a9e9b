"""The ledger on disk: a folder per close that is written once and never again, each chained to the one before it.

    ledger/0001-2026-01/header.json   who closed the month, when, from which inputs and policy, despite what
                        lines.csv     what was charged, in nine decimals and in cents
                        days.csv      what each day was built from
                        hash.txt      SHA-256 over the hash of the close before and the SHA-256 of the three files

Plain files, so that an auditor needs neither this program nor a database to check them. The warehouse can be thrown
away and built again; the ledger cannot, and nothing but a close adds to it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from orchestration.errors import ApportionError
from orchestration.landing.schemas import CLOSED_DAYS_SCHEMA, CLOSED_LINES_SCHEMA, RETROACTIVE_DAYS_SCHEMA

Row = dict[str, Any]

HEADER_COLUMNS = (
    *("closed_at", "closed_by", "override_reason", "policy_version", "delivery_hashes", "content_hash"),
    *("previous_hash",),
)
"""What every line repeats of its close, so that a line can be read alone."""
LINE_COLUMNS = [
    name for name in CLOSED_LINES_SCHEMA.names if name not in (*HEADER_COLUMNS, "close_number", "period_date", "date")
]
DAY_COLUMNS = [name for name in CLOSED_DAYS_SCHEMA.names if name not in ("close_number", "date")]
RETROACTIVE_COLUMNS = [name for name in RETROACTIVE_DAYS_SCHEMA.names if name != "date"]
FILES = ("header.json", "lines.csv", "days.csv")


@dataclass(frozen=True)
class Close:
    folder: Path
    number: int
    period: date
    """First day of the closed month."""
    header: Mapping[str, Any]
    content_hash: str

    @property
    def lines(self) -> list[Row]:
        """As they stand in the ledger, with what they repeat of the close."""
        common = {name: self.header.get(name) for name in HEADER_COLUMNS} | {"content_hash": self.content_hash}
        return [
            {"close_number": str(self.number), "period_date": str(self.period), **row, **common}
            for row in _rows(self.folder / "lines.csv")
        ]

    @property
    def days(self) -> list[Row]:
        return _rows(self.folder / "days.csv")


def folder_of(data: Path) -> Path:
    return data / "ledger"


def closes(data: Path) -> list[Close]:
    """All closes, the first one first."""
    folders = sorted(folder for folder in folder_of(data).glob("[0-9]*-*") if folder.is_dir())
    return [_close(folder) for folder in folders]


def _close(folder: Path) -> Close:
    try:
        header = json.loads((folder / "header.json").read_text(encoding="utf-8"))
        return Close(
            folder,
            header["close_number"],
            date.fromisoformat(header["period"]),
            header,
            (folder / "hash.txt").read_text(encoding="utf-8").strip(),
        )
    except (OSError, ValueError, KeyError) as error:
        raise ApportionError(
            f"the close {folder.name} in the ledger cannot be read: {error}",
            f"bring {folder} back from a backup: closed months exist nowhere else",
        ) from error


def append(
    data: Path, period: date, header: Mapping[str, Any], lines: Sequence[Mapping], days: Sequence[Mapping]
) -> Close:
    """Adds a close after all others. The folder appears whole or not at all; the caller holds the writer's lock."""
    before = closes(data)
    number = len(before) + 1
    target = folder_of(data) / f"{number:04d}-{period:%Y-%m}"
    beside = target.with_name(f".{target.name}.tmp-{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    previous = before[-1].content_hash if before else ""
    numbered = {"close_number": number, "period": str(period), "previous_hash": previous, **header}
    contents = {
        "header.json": json.dumps(numbered, indent=2, ensure_ascii=False, sort_keys=True) + "\n",
        "lines.csv": _csv(LINE_COLUMNS, lines),
        "days.csv": _csv(DAY_COLUMNS, days),
    }
    for name, text in contents.items():
        _write(beside / name, text)
    _write(beside / "hash.txt", chain(previous, beside) + "\n")
    os.rename(beside, target)
    return _close(target)


def chain(previous: str, folder: Path) -> str:
    """The hash of a close: over the hash before it and the hashes of its files, a line each."""
    hashes = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES]
    return hashlib.sha256("".join(f"{line}\n" for line in (previous, *hashes)).encode()).hexdigest()


def broken_links(data: Path) -> list[str]:
    """What of the ledger is not as it was written: empty, or one sentence for each."""
    found, previous = [], ""
    for place, close in enumerate(closes(data), start=1):
        if close.number != place:
            found.append(f"close {place} is missing: the ledger goes on with {close.folder.name}")
        if close.header["previous_hash"] != previous:
            found.append(f"{close.folder.name} does not follow what is before it: its previous_hash is another one")
        if chain(close.header["previous_hash"], close.folder) != close.content_hash:
            found.append(f"{close.folder.name} was changed after it was closed: its files do not give its hash")
        previous = close.content_hash
    return found


def require_intact(data: Path) -> None:
    broken = broken_links(data)
    if broken:
        raise ApportionError(
            "the ledger was tampered with: " + "; ".join(broken),
            f"bring {folder_of(data)} back from a backup; `apportion verify` tells which lines differ",
        )


# --- what was let into closed months -----------------------------------------------------------------------


def retroactive_days(data: Path) -> list[Row]:
    path = folder_of(data) / "retroactive.csv"
    return _rows(path) if path.exists() else []


def let_in(data: Path, rows: Iterable[Mapping]) -> None:
    """Adds changes of policy that somebody gave a reason for."""
    path = folder_of(data) / "retroactive.csv"
    beside = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    _write(beside, _csv(RETROACTIVE_COLUMNS, [*retroactive_days(data), *rows]))
    os.replace(beside, path)


# --- text --------------------------------------------------------------------------------------------------


def as_text(value: Any) -> str:
    """One spelling for each value, the same whenever it is written."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:.9f}"
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds")
    return str(value)


def _csv(columns: Sequence[str], rows: Iterable[Mapping]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([as_text(row.get(name)) for name in columns] for row in rows)
    return text.getvalue()


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, text: str) -> None:
    """To the disk, not only to the kernel: a closed month must survive a power cut."""
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
