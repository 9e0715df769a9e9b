"""Writes the pages beside the published marts: one of everything and one per team, each renamed over the one before."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from orchestration.errors import ApportionError
from orchestration.publish.page import payload
from orchestration.publish.page.figures import aggregated
from orchestration.publish.page.render import html
from orchestration.workspace import Workspace


@dataclass(frozen=True)
class Pages:
    report: Path
    teams: dict[str, Path]
    """By team id."""

    @property
    def report_bytes(self) -> int:
        return self.report.stat().st_size

    @property
    def bytes(self) -> int:
        return self.report_bytes + sum(page.stat().st_size for page in self.teams.values())


def write_pages(workspace: Workspace) -> Pages:
    """Replaces `published/report.html` and `published/teams/`, from the published marts. The caller holds the writer's
    lock; a reader has the old page or the new one."""
    marts = workspace.published / "marts.duckdb"
    if not marts.exists():
        raise ApportionError("there is nothing to make a page of", "run `apportion run --from … --to …` first")
    folder = workspace.published / "teams"
    folder.mkdir(exist_ok=True)
    for leftover in (*workspace.published.glob("*.html.tmp-*"), *folder.glob("*.html.tmp-*")):
        leftover.unlink()
    with aggregated(marts) as figures:
        report = _write(workspace.published / "report.html", html(payload.report(figures), "Cost report"))
        teams = {}
        for team_id in payload.payers(figures):
            data = payload.team(figures, team_id)
            name = data["teams"][0][1]
            teams[team_id] = _write(folder / _file_name(team_id), html(data, f"Cost report of {name}"))
    for stale in set(folder.glob("*.html")) - set(teams.values()):
        stale.unlink()
    return Pages(report, teams)


def _write(page: Path, text: str) -> Path:
    beside = page.with_name(f"{page.name}.tmp-{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(page)
    return page


def _file_name(team_id: str) -> str:
    """A team's id is anybody's text: what could leave the folder is written as in an address."""
    return f"{quote(team_id, safe=' ')}.html"
