"""What readers get: each function writes its part of `published/` and says what it wrote. The caller holds the lock.

Everything but the marts themselves is made of the published copy, so it can be made again without the warehouse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestration.workspace import Workspace

Said = dict[str, Any]


def write_marts(workspace: Workspace) -> Said:
    from orchestration.publish.marts import publish

    marts = publish(workspace)
    return {
        "tables": len(marts.rows),
        "rows": sum(marts.rows.values()),
        "bytes": marts.bytes,
        "path": str(marts.database),
    }


def write_report(workspace: Workspace) -> Said:
    from orchestration.publish.page import write_pages

    pages = write_pages(workspace)
    return {"pages": 1 + len(pages.teams), "bytes": pages.bytes, "path": str(pages.report)}


def write_statements(workspace: Workspace) -> Said:
    from orchestration.publish.journal import write_journals
    from orchestration.publish.statements import write_statements as write

    statements, journals = write(workspace), write_journals(workspace)
    return {
        "statement files": len(statements.written) + statements.kept,
        "journal files": len(journals),
        "path": str(statements.folder),
    }


def write_tableau(workspace: Workspace) -> Said:
    from orchestration.publish.tableau.extracts import write_extracts

    extracts = write_extracts(workspace)
    return {"extracts": len(extracts.rows), "rows": sum(extracts.rows.values()), "path": str(extracts.folder)}


PARTS: dict[str, Callable[[Workspace], Said]] = {
    "marts": write_marts,
    "report": write_report,
    "statements": write_statements,
    "tableau": write_tableau,
}


def publish_everything(workspace: Workspace, say: Callable[[str], None] = lambda _: None) -> dict[str, Said]:
    said = {}
    for name, write in PARTS.items():
        say(f"publishing {name}")
        said[name] = write(workspace)
    return said
