"""Which UTC days new, changed and removed files ask for, so that a sensor requests exactly those."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from orchestration.connectors import feeds
from orchestration.landing.claims import Claim
from orchestration.landing.days import landed_days, last_landed_day
from orchestration.landing.deliveries import discover
from orchestration.landing.displaced import displaced_days
from orchestration.landing.engine import session
from orchestration.landing.index import Index
from orchestration.landing.spans import ONE_DAY, Span, days
from orchestration.landing.stage import learn_coverage
from orchestration.settings import Source


@dataclass(frozen=True)
class SeenFile:
    """A file as it was. What it was about is kept here, because nobody can ask a removed file."""

    size: int
    mtime_ns: int
    delivered_at: datetime
    days: tuple[Span, ...]
    claims: tuple[Claim, ...]


@dataclass(frozen=True)
class Cursor:
    """The files of a source when somebody last looked: by table, oldest delivery first."""

    tables: dict[str, dict[str, SeenFile]] = field(default_factory=dict)

    def dumps(self) -> str:
        return json.dumps(
            {table: {name: _plain(seen) for name, seen in files.items()} for table, files in self.tables.items()},
            separators=(",", ":"),
        )

    @classmethod
    def loads(cls, text: str | None) -> Cursor:
        stored = json.loads(text) if text else {}
        return cls({table: {name: _seen(*f) for name, f in files.items()} for table, files in stored.items()})


def _plain(seen: SeenFile) -> list[object]:
    spans = [list(map(str, span)) for span in seen.days]
    return [seen.size, seen.mtime_ns, seen.delivered_at.isoformat(), spans, [claim.plain() for claim in seen.claims]]


def _seen(size: int, mtime_ns: int, delivered_at: str, spans: list[list[str]], claims: list[list]) -> SeenFile:
    return SeenFile(
        size,
        mtime_ns,
        datetime.fromisoformat(delivered_at),
        tuple(_span(span) for span in spans),
        tuple(Claim.of(claim) for claim in claims),
    )


def _span(stored: list[str]) -> Span:
    return date.fromisoformat(stored[0]), date.fromisoformat(stored[1])


def touched_days(source: Source, data_dir: Path, since: Cursor) -> tuple[set[date], Cursor]:
    """The days on which a source's files say something else than at `since`, and the cursor for next time.

    An inventory row without an end touches the days that are landed already; later ones will read it anyway.
    """
    spans: list[Span] = []
    seen: dict[str, dict[str, SeenFile]] = {}
    index = Index.load(source, data_dir)
    with session(data_dir) as con:
        for feed in feeds(source):
            if feed.pull:
                feed.pull(data_dir)
            deliveries = discover(feed.pattern, source=source.name, optional=True)
            coverage = learn_coverage(con, feed, deliveries, index)
            seen[feed.table] = {
                d.name: SeenFile(d.size, d.mtime_ns, d.delivered_at, tuple(c.days), c.claims)
                for d, c in zip(deliveries, coverage, strict=True)
            }
            changed = _changed(feed.table, since.tables.get(feed.table, {}), seen[feed.table])
            spans += [span for versions in changed.values() for version in versions for span in version.days]
            if feed.table == "account_tree" and changed:
                spans += _days_before_first(since.tables.get(feed.table, {}), seen[feed.table], data_dir)
            ranks = {rank for rank, delivery in enumerate(deliveries) if delivery.name in changed}
            claims = [(v.delivered_at, claim) for versions in changed.values() for v in versions for claim in v.claims]
            spans += displaced_days(con, feed, deliveries, index, ranks, claims)
    index.save()
    return set(days(spans, last_landed_day(data_dir))), Cursor(seen)


def _days_before_first(before: dict[str, SeenFile], now: dict[str, SeenFile], data_dir: Path) -> list[Span]:
    """The first dump of a tree also counts on the landed days before it, so they change with it."""
    first = [next(iter(files.items()), None) for files in (before, now)]
    landed = landed_days(data_dir)
    if first[0] == first[1] or not landed:
        return []
    return [(min(landed), max(landed) + ONE_DAY)]


def _changed(table: str, before: dict[str, SeenFile], now: dict[str, SeenFile]) -> dict[str, list[SeenFile]]:
    """The old and the new version, as far as there are any, of each file that is not what it was."""
    if table == "node_inventory":
        # Only the newest inventory is in force; a change of any other one changes nothing.
        before, now = (dict(list(files.items())[-1:]) for files in (before, now))
    return {
        name: [files[name] for files in (before, now) if name in files]
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
    }
