"""The rows of a scenario laid over those of the seeds: which base rows they replace, cut short or take away."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestration.errors import ApportionError
from orchestration.seeds import require_readable_files

PERIOD = ("valid_from", "valid_to")
FIRST, LAST = "0001-01-01", "9999-12-31"
"""What an open end of a validity is as a day: ISO days compare as text."""

Row = dict[str, str]


@dataclass(frozen=True)
class Change:
    """What a scenario says of one seed."""

    seed: str
    file: str
    """The scenario's CSV, as people know it."""
    key: Sequence[str]
    """The columns that name a row of the seed."""
    base: list[Row]
    rows: list[Row]

    def merged(self) -> list[Row]:
        return overlay(self.base, self.rows, self.key)

    def named(self, row: Row) -> str:
        """As the tests of the seeds name it: `idle_policies/h100-spot/down@2026-01-01`."""
        name = "/".join((self.seed, *(row[column] for column in self.key)))
        return f"{name}@{row['valid_from']}" if "valid_from" in row else name

    def problems(self) -> Iterator[str]:
        for row in self.rows:
            problem = self._problem(row)
            if problem:
                yield f"{self.file}, row {self.named(row)}: {problem}"

    def _problem(self, row: Row) -> str | None:
        empty = [column for column in self.key if not row[column]]
        start, end = _days(row)
        if empty:
            return f"{empty[0]} is empty; {', '.join(self.key)} say which row of the base is meant"
        if start >= end:
            return "valid_to is not after valid_from; it is the first day on which the row no longer counts"
        if _takes_away(row, self.key) and not any(_meets(base, row, self.key) for base in self.base):
            return "it takes away what is not there; correct its key or its days, or fill in the other cells"
        # What is left of an amount would be the whole amount again, spread over fewer days.
        if any(
            base.get("adjustment_kind") == "amount" and _without(base, row)
            for base in self.base
            if _meets(base, row, self.key)
        ):
            return "it would cut an amount in two; let its days hold all days of the base's row"
        return None


def read_change(path: Path, file: str, base: Path, key: Sequence[str]) -> Change:
    """Refuses what cannot be laid over the base, with everything that is wrong at once."""
    require_readable_files({file: path})
    change = Change(path.stem, file, key, _rows(base), _rows(path))
    problems = list(change.problems())
    if problems:
        raise ApportionError(
            "the scenario cannot be laid over the policy, and no table has changed:\n  " + "\n  ".join(problems),
            "mend the rows that are named and run again",
        )
    return change


def write_merged(path: Path, change: Change) -> None:
    """Over the base's own copy, whose order of columns it keeps."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = next(csv.reader(file))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, lineterminator="\n")
        writer.writeheader()
        writer.writerows(change.merged())


def _rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


# --- rows --------------------------------------------------------------------------------------------------


def overlay(base: Sequence[Row], changes: Sequence[Row], key: Sequence[str]) -> list[Row]:
    """The base with the changes laid over it.

    For its key and its validity a changed row takes the place of what the base says; the base keeps what lies before
    and after. A changed row that holds nothing but its key and its days leaves nothing in that place.
    """
    left = list(base)
    for change in changes:
        left = [part for row in left for part in (_without(row, change) if _meets(row, change, key) else [row])]
    return left + [change for change in changes if not _takes_away(change, key)]


def _takes_away(change: Row, key: Sequence[str]) -> bool:
    return not any(value for column, value in change.items() if column not in (*key, *PERIOD))


def _meets(row: Row, change: Row, key: Sequence[str]) -> bool:
    """Whether both speak of the same thing on some day."""
    (start, end), (from_day, to_day) = _days(row), _days(change)
    return all(row[column] == change[column] for column in key) and start < to_day and from_day < end


def _without(row: Row, change: Row) -> list[Row]:
    """What is left of a row before and after the days of a change that it meets."""
    (start, end), (from_day, to_day) = _days(row), _days(change)
    before = [{**row, "valid_to": from_day}] if start < from_day else []
    after = [{**row, "valid_from": to_day}] if to_day < end else []
    return before + after


def _days(row: Mapping[str, str]) -> tuple[str, str]:
    return row.get("valid_from") or FIRST, row.get("valid_to") or LAST
