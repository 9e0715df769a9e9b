"""What a connector gets and what it gives back.

A connector is a function from deliveries (files of one vendor's format) to typed rows of one landing table.
It works on all the files of a run at once, in SQL, because the fixed price of a statement would otherwise be
paid three hundred times; rows carry the ordinal of their file instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class Delivery:
    """One file that somebody put into the inbox."""

    path: Path
    name: str
    """Its path below the fixed part of the source's pattern: usually just the file name."""
    delivered_at: datetime
    declared: tuple[date, date] | None
    """The UTC days [from, to) for which the file says it is complete; None: it does not say."""
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Reject:
    """A piece of a file that could not even be cut into fields."""

    file: int
    line: int
    reason: str
    raw: str


@dataclass(frozen=True)
class Found:
    """What a file turned out to be."""

    variant: str
    """Format, version and form in words, such as `FOCUS 1.2, gzipped CSV`."""
    unknown_columns: tuple[str, ...] = ()
    """Columns that neither we nor the vendor's documentation know."""
    doubts: tuple[str, ...] = ()
    """What was read, but might be meant otherwise, such as local times in a repeated hour."""


@dataclass(frozen=True)
class Reading:
    """The outcome of reading some deliveries, to be queried and never fetched as a whole."""

    rows: str
    """A SELECT with the table's content columns plus `file` (ordinal), `line`, `bad_reason` and
    `skip_reason`. A row with a bad_reason is quarantined, one with a skip_reason is of no interest (a job
    step), and only rows with neither are records."""
    counts: list[int]
    """Rows found in each file, counted apart from `rows` so that a loss would show."""
    rejects: list[Reject] = field(default_factory=list)
    folded: dict[int, int] = field(default_factory=dict)
    """For formats that tell one record in many rows: how many rows of a file have none of their own in `rows`, because
    they add to another one or because nobody asks for them."""
    proven: dict[int, date] = field(default_factory=dict)
    """Files whose own statistics prove that all rows are good and of this one day: no need to look inside."""
    found: list[Found] = field(default_factory=list)
    """What each file is, in the order of the files."""
    notes: dict[str, int] = field(default_factory=dict)
    """Things worth counting that are no mistakes, such as ambiguous local hours."""


Read = Callable[[DuckDBPyConnection, Sequence[Delivery]], Reading]


@dataclass(frozen=True)
class Feed:
    """One landing table that a source fills, from the files that match a pattern."""

    table: str
    pattern: str
    read: Read
    stream: Callable[[Delivery], str] | None = None
    """For bills of which each delivery tells only a part (actual, amortized): which part. A newer delivery replaces
    older ones of its own stream, and lines of different streams that say the same of the world become one charge
    with the sum of their billed and effective costs."""
    restates: bool = True
    """Whether a newer bill replaces the older ones of its billing periods; if not, bills add up."""
    pull: Callable[[Path], None] | None = None
    """For sources that are no files: brings what changed into files of the pattern, below the data folder."""
