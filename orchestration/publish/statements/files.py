"""Writes the statements beside the published marts: three files per team and month, and a list of them per month.

A closed month is written once. The list remembers the close that its files are about and their hashes, so the years
before cost a look at the list; what somebody removed or changed is made again, and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from orchestration.errors import ApportionError
from orchestration.publish.statements.figures import Figures, Period, Statement, opened
from orchestration.publish.statements.render import html_of
from orchestration.publish.statements.sheets import csv_of, xlsx_of
from orchestration.publish.steady import put, remove_leftovers
from orchestration.workspace import Workspace

LIST = "statements.json"
FORMATS: dict[str, Callable[[Statement], bytes]] = {"html": html_of, "xlsx": xlsx_of, "csv": csv_of}


@dataclass
class Statements:
    folder: Path
    written: list[Path] = field(default_factory=list)
    """New or changed."""
    kept: int = 0
    """Files that were there already and say the same."""


def write_statements(workspace: Workspace) -> Statements:
    """`published/statements/<YYYY-MM>/<team>.html`, `.xlsx` and `.csv`, from the published marts. The caller holds the
    writer's lock; a reader has the old file or the new one."""
    marts = workspace.published / "marts.duckdb"
    if not marts.exists():
        raise ApportionError("there is nothing to make statements of", "run `apportion run --from … --to …` first")
    made = Statements(workspace.published / "statements")
    remove_leftovers(made.folder)
    with opened(marts) as figures:
        periods = figures.periods() if figures else []
        for period in periods:
            _write_month(figures, period, made)
    _forget_other_months(made.folder, {period.name for period in periods})
    return made


def _write_month(figures: Figures, period: Period, made: Statements) -> None:
    folder = made.folder / period.name
    known = _listed(folder)
    intact: dict[str, str] = {}
    if period.content_hash and known.get("close") == period.content_hash:
        intact = {name: digest for name, digest in known["files"].items() if _digest_of(folder / name) == digest}
        if len(intact) == len(known["files"]):
            made.kept += len(intact)
            return
    files = {}
    for statement in figures.statements(period):
        for ending, content_of in FORMATS.items():
            name = f"{file_name(statement.team_id)}.{ending}"
            if name in intact:
                files[name], made.kept = intact[name], made.kept + 1
                continue
            content = content_of(statement)
            files[name] = hashlib.sha256(content).hexdigest()
            if put(folder / name, content):
                made.written.append(folder / name)
            else:
                made.kept += 1
    for name in known.get("files", {}).keys() - files.keys():
        (folder / Path(name).name).unlink(missing_ok=True)
    listed = {"month": period.name, "state": "closed" if period.content_hash else "draft", "close": period.content_hash}
    put(folder / LIST, (json.dumps({**listed, "files": files}, indent=1, ensure_ascii=False) + "\n").encode())


def _forget_other_months(folder: Path, months: set[str]) -> None:
    """Drafts of months that the books no longer have. What no list names is somebody else's and stays."""
    for place in folder.glob("*/" + LIST):
        if place.parent.name not in months:
            for name in _listed(place.parent).get("files", {}):
                (place.parent / Path(name).name).unlink(missing_ok=True)
            place.unlink()
            if not any(place.parent.iterdir()):
                place.parent.rmdir()


def _listed(folder: Path) -> dict:
    try:
        listed = json.loads((folder / LIST).read_text(encoding="utf-8"))
        return listed if isinstance(listed.get("files"), dict) else {}
    except (OSError, ValueError, AttributeError):
        return {}


def _digest_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def file_name(team_id: str) -> str:
    """A team's id is anybody's text: what could leave the folder is written as in an address."""
    return quote(team_id, safe=" ")
