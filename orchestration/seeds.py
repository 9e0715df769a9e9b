"""Seeds as files: whether every cell of every CSV can be loaded at all, said better than a loader would say it.

What the rows mean is checked by the tests of the seeds in dbt; see `check_seeds` in `orchestration/dbt.py`.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path

import yaml

from orchestration.errors import ApportionError
from orchestration.workspace import PROJECT_ROOT

FOLDERS = ("policy", "reference")
SHOWN = 20
"""Problems listed in one message: enough to mend a file in one go, and not a screen full of one mistake."""

_KINDS: dict[str, tuple[re.Pattern[str], str, str]] = {
    "int64": (re.compile(r"[+-]?\d{1,18}"), "no whole number", "write digits only, such as 12"),
    "numeric(38, 9)": (
        re.compile(r"[+-]?(\d{1,29}(\.\d{0,9})?|\.\d{1,9})"),
        "no number with at most nine decimals",
        "write digits and a decimal point, such as 0.25",
    ),
    "date": (re.compile(r"\d{4}-\d\d-\d\d"), "no day", "write year-month-day, such as 2026-01-31"),
    "bool": (re.compile(r"true|false", re.IGNORECASE), "neither true nor false", "write true or false"),
}


@cache
def known_columns() -> Mapping[str, Mapping[str, str]]:
    """Of every seed that the project knows, the columns and their types, as `dbt_project.yml` declares them."""
    declared = yaml.safe_load((PROJECT_ROOT / "dbt_project" / "dbt_project.yml").read_text(encoding="utf-8"))
    seeds = declared["seeds"][declared["name"]]
    return {name: config["+column_types"] for name, config in seeds.items() if not name.startswith("+")}


def seed_files(seeds: Path) -> dict[str, Path]:
    """The CSVs of a seeds folder, by the name of the seed."""
    return {path.stem: path for folder in FOLDERS for path in sorted((seeds / folder).rglob("*.csv"))}


def content_hash(seeds: Path) -> str:
    digest = hashlib.sha256()
    for name, path in seed_files(seeds).items():
        digest.update(f"{name}:{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def require_files(seeds: Path) -> None:
    """Every seed that the models read has its file. Without it dbt would only say that a node was not found."""
    present = seed_files(seeds)
    own = seed_files(PROJECT_ROOT / "seeds")
    missing = [name for name in known_columns() if name not in present]
    if missing:
        shown = [f"seeds/{own[name].parent.name if name in own else 'policy'}/{name}.csv" for name in missing]
        header = ",".join(known_columns()[missing[0]])
        raise ApportionError(
            f"the seeds folder {seeds} lacks " + ", ".join(shown),
            f"add it; where nothing is to be said, its header is enough. The first one's: {header}",
        )


def require_readable(seeds: Path) -> None:
    """Every cell of every seed can be loaded. The error names file, line and column, for all of them at once."""
    require_readable_files({f"seeds/{path.parent.name}/{path.name}": path for path in seed_files(seeds).values()})


def require_readable_files(files: Mapping[str, Path]) -> None:
    """The same of single CSVs that are named like seeds, by the names under which people know them."""
    known = known_columns()
    problems = [
        f"{shown}{problem}"
        for shown, path in files.items()
        if path.stem in known
        for problem in _problems(path, known[path.stem])
    ]
    if problems:
        more = [f"… and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise ApportionError(
            "the policy cannot be read, and no table has changed:\n  " + "\n  ".join(problems[:SHOWN] + more),
            "mend the cells that are named and run again",
        )


def _problems(path: Path, columns: Mapping[str, str]) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            faults = list(_header_problems(header, columns))
            if faults:
                yield from faults
                return
            for row in lines:
                # A blank line holds no row, for the loader too.
                if row:
                    yield from (f", line {lines.line_num}{problem}" for problem in _row_problems(header, row, columns))
    except UnicodeDecodeError as error:
        yield f": byte {error.start} is no UTF-8; save the file as CSV in UTF-8"
    except csv.Error as error:
        yield f", line {lines.line_num}: {error}; a quoted cell ends with a quote, and a quote inside it is doubled"


def _header_problems(header: list[str], columns: Mapping[str, str]) -> Iterator[str]:
    for column in columns:
        if column not in header:
            yield f", line 1: the column {column} is missing; the columns are {','.join(columns)}"
    for column, count in Counter(header).items():
        if column not in columns:
            yield f", line 1: there is no column {column or '(empty)'}; the columns are {','.join(columns)}"
        elif count > 1:
            yield f", line 1: the column {column} is there {count} times; keep one of them"


def _row_problems(header: list[str], row: list[str], columns: Mapping[str, str]) -> Iterator[str]:
    if len(row) != len(header):
        yield (
            f": {len(row)} cells under {len(header)} columns, the last is {row[-1]!r}; an empty cell needs its comma,"
            " and a cell with a comma inside needs quotes around it"
        )
        return
    for column, cell in zip(header, row, strict=True):
        kind = _KINDS.get(columns[column])
        if kind and cell and not _fits(cell, columns[column]):
            _, complaint, remedy = kind
            yield f", column {column}: {cell!r} is {complaint}; {remedy}"


def _fits(cell: str, kind: str) -> bool:
    if not _KINDS[kind][0].fullmatch(cell):
        return False
    if kind == "date":
        try:
            date.fromisoformat(cell)
        except ValueError:
            return False
    return True
