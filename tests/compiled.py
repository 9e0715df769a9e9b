"""A model's own SQL, as dbt compiles it, on a few made-up rows: for sizes that no small company reaches."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb

from orchestration.dbt import Window, invoke
from orchestration.workspace import Workspace

Row = dict[str, Any]
RELATION = re.compile(r'"warehouse"\."(\w+)"\."(\w+)"')


def compiled(workspace: Workspace, models: Sequence[str], days: Window) -> dict[str, str]:
    """The SQL of some models for a window of days."""
    window = {"window_start": str(days.start), "window_end": str(days.end)}
    arguments = ["--log-level", "none", "--quiet", "compile", "--select", *models, "--vars", json.dumps(window)]
    result = invoke(workspace, arguments)
    assert result.success, result.exception
    return {one.node.name: one.node.compiled_code for one in result.result.results}


def answer(sql: str, tables: Mapping[str, Sequence[Row]], like: Path, threads: int = 2) -> list[Row]:
    """What a model says of these rows of the tables that it reads.

    Its other tables are empty, and so are the other columns. Types are those of a built warehouse.
    """
    with duckdb.connect(config={"threads": threads}) as connection:
        connection.execute(f"attach '{like}' as built (read_only); attach ':memory:' as warehouse; use warehouse")
        for schema, table in sorted(set(RELATION.findall(sql))):
            columns = connection.execute(
                """
                select column_name, data_type from duckdb_columns()
                where database_name = 'built' and schema_name = ? and table_name = ?
                """,
                [schema, table],
            ).fetchall()
            listed = ", ".join(f'"{name}" {kind}' for name, kind in columns)
            connection.execute(f"create schema if not exists {schema}; create table {schema}.{table} ({listed})")
            for row in tables.get(table, ()):
                places = ", ".join("?" for _ in row)
                names = ", ".join(f'"{name}"' for name in row)
                connection.execute(f"insert into {schema}.{table} ({names}) values ({places})", list(row.values()))
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
