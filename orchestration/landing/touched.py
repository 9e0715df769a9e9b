"""Which UTC days new, changed and removed files ask for: what a sensor needs to request exactly those days."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from orchestration.connectors import feeds
from orchestration.landing.days import last_landed_day
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session
from orchestration.landing.index import Index
from orchestration.landing.spans import Span, days
from orchestration.landing.stage import learn_coverage
from orchestration.settings import Source


@dataclass(frozen=True)
class SeenFile:
    size: int
    mtime_ns: int
    days: tuple[Span, ...]
    """Kept here because nobody can ask a removed file which days it was about."""


@dataclass(frozen=True)
class Cursor:
    """The files of a source as they were when somebody last looked, oldest delivery first within each table."""

    files: dict[str, SeenFile] = field(default_factory=dict)

    def dumps(self) -> str:
        return json.dumps(
            {
                name: [seen.size, seen.mtime_ns, [[str(start), str(end)] for start, end in seen.days]]
                for name, seen in self.files.items()
            },
            separators=(",", ":"),
        )

    @classmethod
    def loads(cls, text: str | None) -> Cursor:
        stored = json.loads(text) if text else {}
        return cls(
            {
                name: SeenFile(
                    size,
                    mtime_ns,
                    tuple((date.fromisoformat(start), date.fromisoformat(end)) for start, end in spans),
                )
                for name, (size, mtime_ns, spans) in stored.items()
            }
        )


def touched_days(source: Source, data_dir: Path, since: Cursor) -> tuple[set[date], Cursor]:
    """The days that the source's files touch and did not when `since` was taken, and the cursor for the next look.

    An inventory row without an end touches the days that are landed already; later ones will read it anyway.
    """
    seen: dict[str, SeenFile] = {}
    index = Index.load(source, data_dir)
    with session(data_dir) as con:
        for feed in feeds(source):
            found = discover(feed.pattern, source=source.name, optional=True)
            coverage = learn_coverage(con, feed, found, index)
            for delivery, covered in zip(found, coverage, strict=True):
                key = f"{feed.table}/{delivery.name}"
                seen[key] = SeenFile(delivery.size, delivery.mtime_ns, tuple(covered.days))
    index.save()
    before, now = dict(since.files), dict(seen)
    if source.kind == "node_inventory":
        # Only the newest inventory is in force; a change of any other one changes nothing.
        before, now = (dict(list(files.items())[-1:]) for files in (before, now))
    spans = [
        span
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
        for version in (before.get(name), now.get(name))
        if version is not None
        for span in version.days
    ]
    return set(days(spans, last_landed_day(data_dir))), Cursor(seen)
