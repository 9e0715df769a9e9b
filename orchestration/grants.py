"""Each team its own rows: a file per team on DuckDB, row access policies on BigQuery.

Who may see what there is in `seeds/access/team_access.csv`. It is no dbt seed: who sees a cost does not change who pays
it, and no day has to be run again for it.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from rich.console import Console

from orchestration.dbt import prepare
from orchestration.errors import ApportionError
from orchestration.publish.team_files import families, write_team_files
from orchestration.warehouse.settings import VARIABLES, BigQuerySettings
from orchestration.warehouse.target import reading
from orchestration.workspace import BIGQUERY, Workspace

COLUMNS = ("team_id", "principal", "valid_from", "valid_to", "reason")
PRINCIPAL = re.compile(r"(user|group|serviceAccount):[^\s@\"'\\,]+@[^\s@\"'\\,]+|domain:[^\s@\"'\\,]+")
"""As IAM writes it. These become part of statements, so this is also what keeps SQL out of them."""
ADMINS = f"{VARIABLES}ADMINS"


@dataclass(frozen=True)
class Access:
    team_id: str
    principal: str
    valid_from: date
    valid_to: date | None

    def holds(self, day: date) -> bool:
        return self.valid_from <= day and (self.valid_to is None or day < self.valid_to)


def grants(workspace: Workspace, apply: bool, console: Console) -> None:
    """On DuckDB writes the teams' files; on BigQuery prints the statements, and with `apply` executes them."""
    if workspace.target == BIGQUERY:
        _on_bigquery(workspace, apply, console)
        return
    with workspace.writing():
        files = write_team_files(workspace)
    console.print(f"{len(files)} teams, a file each in {workspace.published / 'teams'}", soft_wrap=True)


def _on_bigquery(workspace: Workspace, apply: bool, console: Console) -> None:
    from orchestration.warehouse.bigquery import speaking_of
    from orchestration.warehouse.settings import client

    settings = BigQuerySettings.from_environment()
    wanted = list(
        statements(
            protected_tables(workspace, settings),
            team_access(workspace),
            _families(workspace),
            admins(),
            datetime.now(UTC).date(),
        )
    )
    service = client(settings) if apply else None
    for statement in wanted:
        console.print(f"{statement};", soft_wrap=True, markup=False, highlight=False)
        if service:
            with speaking_of(settings, "access cannot be granted"):
                service.query(statement).result()
    console.print(
        f"{len(wanted)} statements executed" if apply else f"{len(wanted)} statements, none executed; --apply does it"
    )


def _families(workspace: Workspace) -> dict[str, list[str]]:
    with workspace.writing(), reading(workspace) as ask:
        return families(ask("select team_id, parent_team_id from core.dim_teams where not is_built_in"))


# --- who may see what --------------------------------------------------------------------------------------


def team_access(workspace: Workspace) -> list[Access]:
    """The rows of `team_access.csv`. An error names the line."""
    file = workspace.seeds / "access" / "team_access.csv"
    if not file.exists():
        raise ApportionError(f"there is no {file}", f"make it, with a row per team and principal: {','.join(COLUMNS)}")
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ApportionError(f"{file}, line 1: other columns than expected", f"write {','.join(COLUMNS)}")
        rows = [_access(f"{file}, line {reader.line_num}", row) for row in reader]
    if not rows:
        raise ApportionError(f"{file} lets nobody see anything", "add a row, or leave the tables without policies")
    return rows


def _access(place: str, row: Mapping[str | None, str | None]) -> Access:
    if None in row or None in row.values():
        raise ApportionError(f"{place}: not as many cells as columns", "an empty cell needs its comma")
    if not PRINCIPAL.fullmatch(row["principal"] or ""):
        raise ApportionError(
            f"{place}: {row['principal']!r} is no principal",
            "write user:, group: or serviceAccount: and an address, or domain: and a domain",
        )
    if not row["team_id"] or not row["reason"]:
        raise ApportionError(f"{place}: the team or the reason is missing", "fill in both")
    try:
        ends = date.fromisoformat(row["valid_to"]) if row["valid_to"] else None
        return Access(row["team_id"], row["principal"], date.fromisoformat(row["valid_from"] or ""), ends)
    except ValueError:
        raise ApportionError(f"{place}: valid_from or valid_to is no day", "write year-month-day") from None


def admins(environment: Mapping[str, str] = os.environ) -> list[str]:
    """Those who keep seeing every row. Without them a table with a policy is empty for its own pipeline."""
    named = [one.strip() for one in environment.get(ADMINS, "").split(",") if one.strip()]
    wrong = [one for one in named if not PRINCIPAL.fullmatch(one)]
    if wrong or not named:
        raise ApportionError(
            f"{ADMINS} does not say who keeps seeing every row"
            if not named
            else f"{ADMINS}: {wrong[0]!r} is no principal",
            "name the account that runs Apportion and those who administer it, with commas between:"
            " serviceAccount:apportion@my-project.iam.gserviceaccount.com,group:finops@example.com",
        )
    return named


# --- statements --------------------------------------------------------------------------------------------


def protected_tables(workspace: Workspace, settings: BigQuerySettings) -> list[str]:
    """The reports with a team in them that runs change in place: a table that is made anew loses its policies, and
    views have none."""
    nodes = json.loads(prepare(workspace).read_bytes())["nodes"].values()
    return [
        f"`{settings.project}`.`{settings.dataset}_reporting`.`{node['name']}`"
        for node in sorted(nodes, key=lambda node: node["name"])
        if node["resource_type"] == "model"
        and node["config"]["schema"] == "reporting"
        and node["config"]["materialized"] == "incremental"
        and "team_id" in node["columns"]
    ]


def statements(
    tables: Sequence[str],
    access: Sequence[Access],
    known: Mapping[str, Sequence[str]],
    administrators: Sequence[str],
    day: date,
) -> Iterator[str]:
    """A policy per table and team, after the one for everything. A team that nobody may see any more loses its own."""
    unknown = sorted({one.team_id for one in access} - known.keys())
    if unknown:
        raise ApportionError(
            f"seeds/access/team_access.csv names {unknown[0]!r}, which is no team",
            f"name one of {', '.join(sorted(known))}",
        )
    current = {
        team: sorted({one.principal for one in access if one.team_id == team and one.holds(day)}) for team in known
    }
    readers = sorted({principal for principals in current.values() for principal in principals})
    ended = sorted({one.principal for one in access} - set(readers) - set(administrators))
    for table in tables:
        yield _policy("apportion_all_rows", table, administrators, "true")
        for team, principals in sorted(current.items()):
            if principals:
                yield _policy(_name(team), table, principals, f"team_id in ({_listed(known[team])})")
            else:
                yield f"drop row access policy if exists {_name(team)} on {table}"
        if readers:
            yield f"grant `roles/bigquery.dataViewer` on table {table} to {_listed(readers)}"
        if ended:
            yield f"revoke `roles/bigquery.dataViewer` on table {table} from {_listed(ended)}"


def _policy(name: str, table: str, principals: Sequence[str], condition: str) -> str:
    return (
        f"create or replace row access policy {name} on {table}"
        f" grant to ({_listed(principals)}) filter using ({condition})"
    )


def _name(team: str) -> str:
    """Letters, digits and underscores; two teams whose ids differ in other signs have different ones."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", team)
    return f"apportion_team_{plain}_{hashlib.sha256(team.encode()).hexdigest()[:8]}"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'" for text in texts)
