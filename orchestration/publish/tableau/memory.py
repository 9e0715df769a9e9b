"""What uploads must not forget between runs: how far one has come, and what was published where.

It lies beside the files in `.uploads.json`. Losing it costs an upload, nothing else.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Session:
    """An upload that the server has begun to receive."""

    id: str
    offset: int = 0
    """Up to where the server has confirmed the file."""
    in_flight: bool = False
    """True while a part is on its way: the server may have it or not."""


@dataclass(frozen=True)
class Publication:
    """What a data source was last published from."""

    content: str
    datasource_id: str


class Memory:
    def __init__(self, folder: Path) -> None:
        self.path = folder / ".uploads.json"
        try:
            kept = json.loads(self.path.read_text(encoding="utf-8"))
            self._sessions = {key: Session(**value) for key, value in kept["sessions"].items()}
            self._published = {key: Publication(**value) for key, value in kept["published"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._sessions, self._published = {}, {}

    def session(self, place: str, content: str) -> Session | None:
        return self._sessions.get(f"{place} {content}")

    def keep(self, place: str, content: str, session: Session | None) -> None:
        """Of each place only the newest upload is kept: nobody will go on with that of an older file."""
        if session is None:
            self._sessions.pop(f"{place} {content}", None)
        else:
            self._sessions = {key: value for key, value in self._sessions.items() if not key.startswith(f"{place} ")}
            self._sessions[f"{place} {content}"] = session
        self._save()

    def published(self, place: str) -> Publication | None:
        return self._published.get(place)

    def publish(self, place: str, publication: Publication | None) -> None:
        if publication is None:
            self._published.pop(place, None)
        else:
            self._published[place] = publication
        self._save()

    def _save(self) -> None:
        kept = {
            "sessions": {key: asdict(value) for key, value in self._sessions.items()},
            "published": {key: asdict(value) for key, value in self._published.items()},
        }
        beside = self.path.with_name(f"{self.path.name}.tmp-{os.getpid()}")
        beside.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        beside.replace(self.path)
