"""The dbt project as it is compiled for BigQuery: every model and test with its SQL, in the order of the graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from typing import Any

import pyarrow as pa
import pytest

from orchestration.dbt import Window, invoke
from orchestration.landing.schemas import LANDINGS_SCHEMA, TABLES, WHOLE_TABLES
from orchestration.workspace import BIGQUERY, Workspace
from tests.bigquery.google import Columns

ENVIRONMENT = {
    "APPORTION_BIGQUERY_PROJECT": "local",
    "APPORTION_BIGQUERY_DATASET": "apportion",
    # Nobody answers there: compiling asks nothing of the service.
    "APPORTION_BIGQUERY_ENDPOINT": "http://127.0.0.1:9",
}
ARROW = {
    pa.string(): "string",
    pa.int64(): "int64",
    pa.float64(): "float64",
    pa.bool_(): "bool",
    pa.date32(): "date",
    pa.timestamp("us", tz="UTC"): "timestamp",
    pa.decimal128(38, 9): "numeric",
}


@dataclass(frozen=True)
class Node:
    name: str
    kind: str
    """`model` or `test`."""
    relation: str
    sql: str
    contract: Columns | None
    """Declared columns, where they are enforced."""
    layer: str


@dataclass(frozen=True)
class Project:
    nodes: Sequence[Node]
    given: dict[str, Columns]
    """The tables that no model makes: what was landed, and the seeds."""
    described: dict[str, tuple[str, str]]
    """Schema and name on DuckDB of each relation."""

    @property
    def models(self) -> list[Node]:
        return [node for node in self.nodes if node.kind == "model"]

    @property
    def tests(self) -> list[Node]:
        return [node for node in self.nodes if node.kind == "test"]


def compiled(workspace: Workspace, days: Window, scenario: str = "") -> Project:
    """Everything that a run of these days sends to BigQuery."""
    window = {"window_start": str(days.start), "window_end": str(days.end), "scenario": scenario}
    if scenario:  # which models there are is parsed, and kept in the data folder
        workspace = replace(workspace, scenario=scenario, data=workspace.data / "what_if")
    workspace = workspace.on(BIGQUERY)
    quiet = ["--log-level", "none", "--quiet", "compile", "--no-populate-cache", "--no-introspect"]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        result = invoke(workspace, [*quiet, "--vars", json.dumps(window)])
        assert result.success, result.exception
        manifest = json.loads((workspace.dbt_target / "manifest.json").read_bytes())
    made = [one for one in manifest["nodes"].values() if one["resource_type"] != "seed"]
    order = TopologicalSorter({one["unique_id"]: one["depends_on"]["nodes"] for one in made})
    compiled_sql = {one.node.unique_id: one.node.compiled_code for one in result.result.results}
    nodes = [
        _node(manifest["nodes"][unique_id], compiled_sql[unique_id])
        for unique_id in order.static_order()
        if unique_id in compiled_sql and manifest["nodes"].get(unique_id, {}).get("resource_type") in ("model", "test")
    ]
    given, described = {}, {}
    for seed in (one for one in manifest["nodes"].values() if one["resource_type"] == "seed"):
        types = seed["config"]["column_types"]
        given[_plain(seed["relation_name"])] = {name: _plain_type(kind) for name, kind in types.items()}
        described[_plain(seed["relation_name"])] = ("seeds", seed["name"])
    for source in (one for one in manifest["sources"].values() if one["source_name"] == "landing"):
        given[_plain(source["relation_name"])] = landed_columns(source["name"])
        described[_plain(source["relation_name"])] = ("landing", source["name"])
    for node in nodes:
        if node.kind == "model":
            described[node.relation] = (node.layer, node.name)
    return Project(nodes, given, described)


def landed_columns(table: str) -> Columns:
    schema = {"landings": LANDINGS_SCHEMA, **WHOLE_TABLES}.get(table)
    if schema is None:
        schema = TABLES[table].schema.append(pa.field("date", pa.date32()))
    return {column.name: ARROW[column.type] for column in schema}


def _node(node: dict[str, Any], sql: str) -> Node:
    contract = None
    if node["resource_type"] == "model" and node["config"]["contract"]["enforced"]:
        contract = {name: _plain_type(column["data_type"]) for name, column in node["columns"].items()}
    relation = _plain(node["relation_name"]) if node["relation_name"] else node["unique_id"]
    layer = (node["config"].get("schema") or "") if node["resource_type"] == "model" else "test"
    return Node(node["name"], node["resource_type"], relation, sql, contract, layer)


def _plain(relation: str) -> str:
    return relation.replace("`", "")


def _plain_type(kind: str) -> str:
    return {"numeric(38, 9)": "numeric", "boolean": "bool"}.get(kind.lower(), kind.lower())
