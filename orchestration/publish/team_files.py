"""One DuckDB file per team, with the team's rows and nobody else's name. DuckDB has no users: a file is the border."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

import duckdb
import pyarrow as pa

from orchestration.errors import ApportionError
from orchestration.publish.marts import STORAGE_VERSION
from orchestration.publish.page.names import Names
from orchestration.workspace import Workspace

LEDGER = "fct_invoice_lines"
FOR_ALL = ("dim_components", "dim_dates", "dim_gpu_models", "dim_workload_classes")
"""What is the same for everybody and tells nothing of anybody. Words in these columns are the project's own: a workload
class may be called like a team without being about it."""


def families(teams: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """Of each team itself and all below it, from pairs of team and parent."""
    parents = dict(teams)

    def above(team: str) -> list[str]:
        line, parent = [team], parents.get(team)
        while parent is not None and parent not in line:
            line.append(parent)
            parent = parents.get(parent)
        return line

    return {team: sorted(one for one in parents if team in above(one)) for team in parents}


def write_team_files(workspace: Workspace) -> dict[str, Path]:
    """Replaces `published/teams/<team>.duckdb`, from the published marts. The caller holds the writer's lock."""
    marts = workspace.published / "marts.duckdb"
    if not marts.exists():
        raise ApportionError("there is nothing to give to teams yet", "run `apportion run --from … --to …` first")
    folder = workspace.published / "teams"
    folder.mkdir(exist_ok=True)
    for leftover in folder.glob("*.duckdb.tmp-*"):
        leftover.unlink()
    with duckdb.connect() as connection:
        connection.execute(f"attach '{marts}' as marts (read_only)")
        teams = connection.execute(
            "select team_id, parent_team_id from marts.core.dim_teams where not is_built_in"
        ).fetchall()
        files = {}
        for team, family in families(teams).items():
            # A team's id is anybody's text: what could leave the folder is written as in an address.
            target = folder / f"{quote(team, safe=' ')}.duckdb"
            beside = target.with_name(f"{target.name}.tmp-{os.getpid()}")
            connection.execute(f"attach '{beside}' as team (storage_version '{STORAGE_VERSION}')")
            _fill(connection, family, _others(connection, family))
            connection.execute("detach team")
            files[team] = beside.replace(target)
    for stale in set(folder.glob("*.duckdb")) - set(files.values()):
        stale.unlink()
    return files


def _others(connection: duckdb.DuckDBPyConnection, family: list[str]) -> Names:
    """Every team that is not of the family, under every name that it ever had. The built-in payers are nobody's."""
    known = connection.execute(
        """
        select team_id, team_name from marts.core.dim_teams where not is_built_in
        union
        select team_id, team_name from marts.core.fct_team_days where not is_built_in
        """
    ).fetchall()
    own = {name for pair in known if pair[0] in family for name in pair}
    return Names(name for pair in known for name in pair if name not in own)


def _fill(connection: duckdb.DuckDBPyConnection, family: list[str], others: Names) -> None:
    tables = _tables(connection)
    vocabulary = {column for (_, table), columns in tables.items() if table in FOR_ALL for column in columns}
    for (schema, table), columns in tables.items():
        # Cleaned before it is written: what is updated inside a file may stay in it.
        connection.execute(f"create or replace temp table own as from marts.{schema}.{table}{_rows(columns)}", [family])
        for column, kind in columns.items():
            if kind == "VARCHAR" and table not in FOR_ALL and column not in vocabulary:
                _withhold(connection, column, others)
        connection.execute(f"create schema if not exists team.{schema}")
        connection.execute(f"create table team.{schema}.{table} as from own")
        _comment(connection, schema, table)
    connection.execute("drop table own")


def _rows(columns: Mapping[str, str]) -> str:
    return " where list_contains($1, team_id)" if "team_id" in columns else " where $1 is not null"


def _tables(connection: duckdb.DuckDBPyConnection) -> Mapping[tuple[str, str], dict[str, str]]:
    """The reports and closed invoices that have a team, and what is for all; each with its columns and their types."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, column, kind in connection.execute(
        """
        select schema_name, table_name, column_name, data_type from duckdb_columns()
        where database_name = 'marts' order by schema_name, table_name, column_index
        """
    ).fetchall():
        found.setdefault((schema, table), {})[column] = kind
    return {
        (schema, table): columns
        for (schema, table), columns in found.items()
        if table in FOR_ALL or ("team_id" in columns and (schema == "reporting" or table == LEDGER))
    }


def _withhold(connection: duckdb.DuckDBPyConnection, column: str, others: Names) -> None:
    """A job may be called after another team, and a path begins with the teams above."""
    texts = connection.execute(f'select distinct "{column}" from own where "{column}" is not null').fetchall()
    named = [text for (text,) in texts if not others.is_clean(text)]
    if named:
        connection.register("named", pa.table({"text": named, "shown": [others.shown(text) for text in named]}))
        connection.execute(f'update own set "{column}" = named.shown from named where own."{column}" = named.text')
        connection.unregister("named")


def _comment(connection: duckdb.DuckDBPyConnection, schema: str, table: str) -> None:
    """What the table and its columns mean, as the marts have it."""
    comments = connection.execute(
        """
        select 'table', '', comment from duckdb_tables()
        where (database_name, schema_name, table_name) = ('marts', $1, $2) and comment is not null
        union all
        select 'column', '."' || column_name || '"', comment from duckdb_columns()
        where (database_name, schema_name, table_name) = ('marts', $1, $2) and comment is not null
        """,
        [schema, table],
    ).fetchall()
    for kind, column, text in comments:
        quoted = text.replace("'", "''")
        connection.execute(f"comment on {kind} team.{schema}.{table}{column} is '{quoted}'")
