"""Publishing the data source on Tableau Server or Tableau Cloud: in parts, and from where the last attempt stopped.

Nothing is sent when the server still has what this very file was published as. The REST API appends parts to an upload
session and tells the size so far, in megabytes, but cannot be asked for it. So after a part whose fate is unknown (the
line broke, or the process was killed) the next answer decides: if the size is not what it should be, a part arrived
twice or not at all, and the upload begins anew. A part too small to show in the size is never sent twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestration import progress
from orchestration.errors import ApportionError
from orchestration.publish.tableau import datasource
from orchestration.publish.tableau.memory import Memory, Publication, Session
from orchestration.publish.tableau.settings import TableauSettings
from orchestration.publish.tableau.site import PAUSES, Site, is_signed_out, is_transient, is_unknown
from orchestration.workspace import Workspace

MEGABYTE = 1 << 20
PART_BYTES = 16 * MEGABYTE
"""Small enough to be sent again without regret; the API takes up to 64 MB in a request and 1,000 parts of a file."""
TELLING_BYTES = 2 * MEGABYTE
"""From here on a part more or less shows in a size that is rounded to megabytes."""
SESSIONS = 3
"""How often an upload is begun before the server is said to be at fault."""
DESCRIPTION = "What every team, project, user and job pays, per day, and why. Written by Apportion; do not edit."


@dataclass(frozen=True)
class Upload:
    name: str
    datasource_id: str
    project: str
    bytes_sent: int
    """0 when nothing had to be sent."""
    resumed_at: int = 0
    """How much of the file an earlier attempt had brought there."""


def upload(
    workspace: Workspace,
    settings: TableauSettings,
    *,
    tables: bool = False,
    part_bytes: int = PART_BYTES,
    pause: Callable[[float], None] = time.sleep,
) -> list[Upload]:
    """Publishes the data source; with `tables`, also each extract as a data source of its own."""
    folder = workspace.published / "tableau"
    files = [folder / f"{datasource.NAME}.tdsx", *(sorted(folder.glob("*.hyper")) if tables else ())]
    if not files[0].exists():
        raise ApportionError("there are no Tableau extracts yet", "run `apportion publish --tableau` to write them")
    memory = Memory(folder)
    with Site(settings, pause) as site:
        project = site.project()
        return [_published(site, memory, file, str(project.id), str(project.name), part_bytes) for file in files]


def _published(site: Site, memory: Memory, file: Path, project_id: str, project: str, part_bytes: int) -> Upload:
    name = datasource.CAPTION if file.suffix == ".tdsx" else file.stem
    place = f"{site.settings.place} {project_id} {name}"
    # One open file throughout: it may be replaced by a newer one meanwhile, and stays whole for us.
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
        last = memory.published(place)
        if last and last.content == digest and site.has(last.datasource_id):
            return Upload(name, last.datasource_id, project, 0)
        attempt = _Attempt(site, memory, place, digest, content, part_bytes)
        for remaining in reversed(range(SESSIONS)):
            session = attempt.brought()
            if session is None:
                continue
            with site.words():
                try:
                    item = site.publish(session, name, file.suffix[1:], project_id, DESCRIPTION)
                except Exception as error:
                    if not is_unknown(error) or not remaining:
                        raise
                    item = None
            memory.keep(place, digest, None)
            if item is None:  # the session has ended meanwhile
                continue
            memory.publish(place, Publication(digest, str(item.id)))
            return Upload(name, str(item.id), project, attempt.sent, attempt.resumed_at)
    raise ApportionError(
        f"{site.settings.place} lost the upload of {file.name} {SESSIONS} times", "publish again later"
    )


class _Attempt:
    """One file on its way to one place."""

    def __init__(self, site: Site, memory: Memory, place: str, digest: str, content: BinaryIO, part_bytes: int) -> None:
        self._site, self._memory, self._place, self._digest = site, memory, place, digest
        self._content, self._part_bytes = content, part_bytes
        self._size = content.seek(0, 2)
        self.sent = 0
        self.resumed_at = 0

    def brought(self) -> str | None:
        """The id of a session with the whole file; None if the one in use was lost on the way."""
        session = self._memory.session(self._place, self._digest)
        if session is None:
            session = Session(self._site.begin())
            self._keep(session)
        else:
            self.resumed_at = session.offset
        while session.offset < self._size:
            progress.say(f"uploading to Tableau: {session.offset / MEGABYTE:.0f} of {self._size / MEGABYTE:.0f} MB")
            following = self._next(session)
            self._keep(following)
            if following is None:
                self.resumed_at = 0
                return None
            session = following
        return session.id

    def _keep(self, session: Session | None) -> None:
        self._memory.keep(self._place, self._digest, session)

    def _next(self, session: Session) -> Session | None:
        """The session with one more part in it; None if it is lost."""
        self._content.seek(session.offset)
        part = self._content.read(self._part_bytes)
        end = session.offset + len(part)
        doubtful = session.in_flight
        renewed = False
        attempts = 0
        self._keep(Session(session.id, session.offset, in_flight=True))
        while True:
            if doubtful and len(part) < TELLING_BYTES:
                return None
            try:
                size = self._site.append(session.id, part)
            except Exception as error:
                if is_signed_out(error) and not renewed:
                    renewed = True
                    self._site.renew()
                elif is_transient(error) and attempts < len(PAUSES):
                    self._site.pause(attempts)
                    attempts += 1
                    doubtful = True
                elif is_unknown(error):
                    return None
                else:
                    with self._site.words():
                        raise
                continue
            self.sent += len(part)
            if doubtful and not _agrees(size, end):
                return None
            return Session(session.id, end)


def _agrees(size: int | None, expected: int) -> bool:
    """Whether the server has as much as it should; it speaks of megabytes, and does not say how it rounds."""
    return size is not None and (abs(size - expected / MEGABYTE) <= 1 or size == expected)
