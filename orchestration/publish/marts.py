"""Publishing: a copy of the star and the reports that BI tools can hold open while the next run writes.

DuckDB allows one writing process or many readers of a file, so nobody reads the warehouse itself. The copy is
written beside the old one and renamed over it: a reader sees the old file or the new one, never half of one. It is
stored in a format that DuckDB 1.x drivers read as well.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

from orchestration.dbt import prepare
from orchestration.errors import ApportionError
from orchestration.workspace import Workspace

SCHEMAS = ("core", "reporting")
STORAGE_VERSION = "v1.2.0"


@dataclass(frozen=True)
class Published:
    database: Path
    parquet: Path
    rows: dict[str, int]

    @property
    def bytes(self) -> int:
        return self.database.stat().st_size + sum(file.stat().st_size for file in self.parquet.glob("*.parquet"))


def publish(workspace: Workspace) -> Published:
    """Replaces `published/marts.duckdb` and `published/parquet/`. The caller holds the writer's lock."""
    if not workspace.warehouse.exists():
        raise ApportionError("there is nothing to publish yet", "run `apportion run --from … --to …` first")
    target = workspace.published / "marts.duckdb"
    parquet = workspace.published / "parquet"
    parquet.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"marts.duckdb.tmp-{os.getpid()}")
    for leftover in (*workspace.published.glob("*.tmp-*"), *parquet.glob("*.tmp-*")):
        leftover.unlink()

    with duckdb.connect() as warehouse:
        warehouse.execute(f"attach '{workspace.warehouse}' as warehouse (read_only)")
        warehouse.execute("use warehouse")
        relations = warehouse.execute(
            f"""
            select table_schema, table_name from information_schema.tables
            where table_catalog = 'warehouse' and (table_schema in {SCHEMAS} or starts_with(table_schema, 'scenario_'))
            order by all
            """
        ).fetchall()
        warehouse.execute(f"attach '{beside}' as marts (storage_version '{STORAGE_VERSION}')")
        descriptions = _descriptions(workspace)
        rows: dict[str, int] = {}
        for schema, table in relations:
            warehouse.execute(f"create schema if not exists marts.{schema}")
            warehouse.execute(f"create table marts.{schema}.{table} as select * from {schema}.{table}")
            # Several scenarios have tables of the same name.
            name = table if schema in SCHEMAS else f"{schema}__{table}"
            (rows[name],) = warehouse.execute(f"select count(*) from marts.{schema}.{table}").fetchone()
            _describe(warehouse, schema, table, descriptions.get(table))
            file = parquet / f"{name}.parquet"
            file_beside = file.with_name(f"{name}.tmp-{os.getpid()}")
            warehouse.execute(f"copy marts.{schema}.{table} to '{file_beside}' (format parquet, compression zstd)")
            file_beside.replace(file)
        warehouse.execute("detach marts")
    beside.replace(target)
    for file in parquet.iterdir():
        if file.stem not in rows:
            file.unlink()
    return Published(target, parquet, rows)


def _describe(warehouse: duckdb.DuckDBPyConnection, schema: str, table: str, node: dict | None) -> None:
    """Carries the models' descriptions along, so that a BI tool shows what a column means."""
    if node is None:
        return
    warehouse.execute(f"comment on table marts.{schema}.{table} is {_quoted(node['description'])}")
    for column in node["columns"].values():
        warehouse.execute(
            f"comment on column marts.{schema}.{table}.{column['name']} is {_quoted(column['description'])}"
        )


def _descriptions(workspace: Workspace) -> dict[str, dict]:
    nodes = json.loads(prepare(workspace).read_bytes())["nodes"]
    return {node["name"]: node for node in nodes.values() if node["resource_type"] == "model"}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
