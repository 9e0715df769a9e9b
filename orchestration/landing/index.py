"""A cache of which days each delivered file touches, so that one day's run opens only the files of that day.

It is no state: delete it at any time and the next run reads everything once to make it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from orchestration.connectors.base import Delivery
from orchestration.landing.claims import Claim
from orchestration.landing.history import Fact, record
from orchestration.landing.spans import Span
from orchestration.settings import Source

FORMAT = 2
"""Raise it when a connector reads other days out of the same file than before."""


@dataclass(frozen=True)
class Coverage:
    """What is known of one file without opening it."""

    days: list[Span]
    """Days of its declared window and of its records: the days that it has a say in."""
    claims: tuple[Claim, ...] = ()
    """What a bill is complete for; what older bills say of it is replaced."""


class Index:
    def __init__(self, source: str, data_dir: Path, settings: str, files: dict[str, dict]) -> None:
        self.source, self._data_dir, self._settings, self._files = source, data_dir, settings, files
        self._path = _path(source, data_dir)
        self._changed = False
        self._facts: list[Fact] = []

    @classmethod
    def empty(cls, source: Source, data_dir: Path) -> Index:
        """One that knows no file yet."""
        return cls(source.name, data_dir, "", {})

    @classmethod
    def load(cls, source: Source, data_dir: Path) -> Index:
        settings = hashlib.md5(f"{FORMAT}{source.model_dump_json()}".encode(), usedforsecurity=False).hexdigest()
        try:
            stored = json.loads(_path(source.name, data_dir).read_text(encoding="utf-8"))
            files = stored["files"] if stored["settings"] == settings else {}
        except (OSError, ValueError, KeyError, TypeError):
            files = {}
        return cls(source.name, data_dir, settings, files)

    def get(self, table: str, delivery: Delivery) -> Coverage | None:
        stored = self._files.get(f"{table}/{delivery.name}")
        if not stored or stored["stat"] != [delivery.size, delivery.mtime_ns, str(delivery.delivered_at)]:
            return None
        return Coverage([_span(s) for s in stored["days"]], tuple(Claim.of(claim) for claim in stored["claims"]))

    def put(self, table: str, delivery: Delivery, coverage: Coverage, facts: list[Fact]) -> None:
        self._changed = True
        self._facts += facts
        self._files[f"{table}/{delivery.name}"] = {
            "stat": [delivery.size, delivery.mtime_ns, str(delivery.delivered_at)],
            "days": [[str(start), str(end)] for start, end in coverage.days],
            "claims": [claim.plain() for claim in coverage.claims],
        }

    def keep_only(self, table: str, deliveries: list[Delivery]) -> None:
        """Forgets files that are gone."""
        names = {f"{table}/{delivery.name}" for delivery in deliveries}
        gone = [key for key in self._files if key.startswith(f"{table}/") and key not in names]
        for key in gone:
            del self._files[key]
            self._changed = True

    def save(self) -> None:
        if self._changed:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_name(f"{self._path.name}.tmp-{os.getpid()}")
            beside.write_text(json.dumps({"settings": self._settings, "files": self._files}), encoding="utf-8")
            os.replace(beside, self._path)
            record(self._data_dir, self.source, self._facts)
            self._changed, self._facts = False, []


def _path(source: str, data_dir: Path) -> Path:
    return data_dir / "landing" / "_index" / f"{source}.json"


def _span(stored: list[str]) -> Span:
    return date.fromisoformat(stored[0]), date.fromisoformat(stored[1])
