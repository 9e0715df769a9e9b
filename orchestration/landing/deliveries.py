"""Deliveries: which files a source has, when each came, and for which days each says it is complete.

All of it is read from the file name, because that is what an administrator controls in a cron line:
`sacct_2026-01-05_20260106T001500Z.psv` is complete for 5 January and was delivered at 00:15 the next day.

Large exports come in parts (`report-00001.csv.gz`, `part_0_0001.csv`). Parts in one folder whose names differ in
nothing but the number are one delivery; taken one by one, each would replace the one before it.
"""

from __future__ import annotations

import glob
import re
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from orchestration.connectors.base import Delivery
from orchestration.errors import ApportionError
from orchestration.landing.spans import ONE_DAY, Span

_STAMP = re.compile(r"(?<!\d)(\d{8}T\d{6})Z(?![0-9A-Za-z])")
_RUN = re.compile(r"(?:^|/)(?:\d{8}-\d{8}/(\d{12})|(\d{4}-?\d\d-?\d\dT\d\d:?\d\d:?\d\d)(?:\.\d+)?Z(?:-[^/]*)?)/")
"""The folder of one run of an export: `20260101-20260131/202602030600/` of Azure, `20260203T060000Z/` or
`2026-02-03T06:00:00.000Z-<id>/` of AWS."""
_RANGE = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)_(\d{4}-\d\d-\d\d)(?!\d)")
_DAY = re.compile(r"(?<!\d)(\d{4}-\d\d-\d\d)(?!\d)")
_PART = re.compile(r"(?<![0-9A-Za-z])(?:part[-_]?\d+(?:[-_]\d+)*|\d{5}|0\d{5,})(?![0-9A-Za-z])", re.IGNORECASE)
_SHORT_PART = re.compile(r"(?<=-)\d{1,4}(?=\.(?:csv\.gz|csv\.zip|zip)$)", re.IGNORECASE)
_FOLDER_OF_A_RUN = re.compile(r"\d{8}-\d{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
"""Where AWS puts one run of a legacy report: the folder of its month, or in that one the folder of the run. Parts are
`report-1.csv.gz` there, which elsewhere may be anything."""
_MONTH = re.compile(r"(?<![\d-])(\d{4})-(\d\d)(?!\d|-\d)")


def discover(pattern: str, *, source: str, optional: bool) -> list[Delivery]:
    """The files of a pattern, oldest delivery first; of equally old ones the later name counts as newer."""
    root = _fixed_part(pattern)
    found = sorted(Path(path) for path in glob.glob(pattern, recursive=True))
    deliveries = _as_one([delivery(path, root) for path in found if path.is_file()])
    if not deliveries and not optional:
        raise ApportionError(
            f"source '{source}': no file matches {pattern}",
            "put the files there, correct the path in the sources file, or set 'optional: true' for it",
        )
    return sorted(deliveries, key=lambda d: (d.delivered_at, d.name))


def _as_one(deliveries: list[Delivery]) -> list[Delivery]:
    """Parts of one export came when the last of them came."""
    newest: dict[str, datetime] = {}
    for found in deliveries:
        whole = _whole(found)
        newest[whole] = max(found.delivered_at, newest.get(whole, found.delivered_at))
    return [replace(found, delivered_at=newest[_whole(found)]) for found in deliveries]


def _whole(found: Delivery) -> str:
    """The name that the parts of an export have in common."""
    folder, slash, name = found.name.rpartition("/")
    is_short = _FOLDER_OF_A_RUN.fullmatch(found.path.parent.name) and _SHORT_PART.search(name)
    return folder + slash + (_SHORT_PART if is_short else _PART).sub("#", name, count=1)


def delivery(path: Path, root: Path) -> Delivery:
    stat = path.stat()
    name = path.relative_to(root).as_posix()
    try:
        delivered_at = _delivered_at(name) or datetime.fromtimestamp(stat.st_mtime_ns // 10**9, UTC)
        declared = _declared(path.name)
    except ValueError as error:
        raise ApportionError(
            f"{path}: the file name has a date that does not exist ({error})", "rename the file"
        ) from error
    if declared and declared[1] <= declared[0]:
        raise ApportionError(
            f"{path}: the window in the file name is empty: {declared[0]} to {declared[1]}",
            "name the file <from>_<to> with the day after its last day as <to>",
        )
    return Delivery(path, name, delivered_at, declared, stat.st_size, stat.st_mtime_ns)


def _fixed_part(pattern: str) -> Path:
    """The folder above the first wildcard."""
    parts = Path(pattern).parts
    fixed = next((place for place, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return Path(*parts[:fixed])


def _delivered_at(name: str) -> datetime | None:
    """The stamp of a file, else that of the run in whose folder it lies: copies may have lost their own times."""
    if found := _STAMP.search(name.rpartition("/")[2]):
        return datetime.strptime(found[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    if found := _RUN.search(name):
        digits = re.sub(r"\D", "", found[1] or found[2])
        return datetime.strptime(digits.ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return None


def _declared(name: str) -> Span | None:
    """The window in a name. Several days or months that are no range with an exclusive end may mean anything."""
    name = _STAMP.sub("", name)
    if found := _RANGE.search(name):
        return date.fromisoformat(found[1]), date.fromisoformat(found[2])
    if days := set(_DAY.findall(name)):
        day = date.fromisoformat(min(days))
        return (day, day + ONE_DAY) if len(days) == 1 else None
    if months := set(_MONTH.findall(name)):
        year, month = map(int, min(months))
        return (date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)) if len(months) == 1 else None
    return None
