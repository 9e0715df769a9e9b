"""The queries that a run of some days sends to BigQuery, and what each of them reads.

The project is compiled for BigQuery without asking it anything, so this works before there is an account.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from graphlib import TopologicalSorter
from typing import Any

from orchestration.dbt import Window, invoke, prepare
from orchestration.errors import ApportionError
from orchestration.estimate.scans import EVER, Catalog, Days, Read, column_types, qualified, reads_of
from orchestration.landing.schemas import WHOLE_TABLES
from orchestration.warehouse.settings import VARIABLES
from orchestration.warehouse.tables import SCHEMAS, bigquery_type
from orchestration.workspace import BIGQUERY, Workspace

PLACEHOLDERS = {
    f"{VARIABLES}PROJECT": "local",
    f"{VARIABLES}DATASET": "apportion",
    # Nobody answers there, and nobody is asked; an address alone keeps dbt from looking for credentials.
    f"{VARIABLES}ENDPOINT": "http://127.0.0.1:9",
    f"{VARIABLES}KEYFILE": "",
    f"{VARIABLES}IMPERSONATE": "",
}
"""Names that stand in the queries and change nothing about their size, also for whoever has a project."""
LANDING, SEEDS = "landing", "seeds"


@dataclass(frozen=True)
class Table:
    """A table that has bytes on BigQuery, and where the same rows are found here."""

    layer: str
    name: str
    types: dict[str, str]
    partition_column: str | None = None
    by_month: bool = False
    is_windowed: bool = False
    """Holds the days of the last run's window and nothing else, so its size follows the length of the window."""

    def __str__(self) -> str:
        return f"{self.layer}.{self.name}"


@dataclass(frozen=True)
class Step:
    """A model or a test of a run."""

    name: str
    kind: str
    """`model` or `test`."""
    layer: str
    queries: Sequence[frozenset[Read]]
    """What each of its queries reads; none for a view, which costs nothing to make."""


@dataclass(frozen=True)
class Plan:
    tables: dict[str, Table]
    """By the full name that queries use."""
    steps: Sequence[Step]


def plan(workspace: Workspace, window: Window) -> Plan:
    """Everything that a run of these days asks BigQuery, in the order of the graph."""
    manifest, compiled = _compiled(workspace, window)
    catalog = Catalog()
    tables = dict(_given(manifest))
    for relation, table in tables.items():
        catalog.add(relation, table.types, table.partition_column)
    steps = []
    for unique_id in _ordered(manifest):
        node = compiled.get(unique_id)
        if node is None or node.resource_type not in ("model", "test"):
            continue
        if node.resource_type == "test":
            # Around every test dbt counts its rows, so that a test's columns are read only if they decide on rows.
            counted = f"select count(*) as failures from (\n{node.compiled_code}\n) as dbt_internal_test"
            steps.append(Step(node.name, "test", "test", [reads_of(qualified(counted, catalog), catalog)]))
        else:
            steps.append(_model(node, window, catalog, tables))
    return Plan(tables, steps)


def _model(node: Any, window: Window, catalog: Catalog, tables: dict[str, Table]) -> Step:
    relation, layer = _plain(node.relation_name), node.config.schema or ""
    query = qualified(node.compiled_code, catalog)
    if node.config.materialized == "view":
        catalog.add_view(relation, query)
        return Step(node.name, "model", layer, [])
    reads = reads_of(query, catalog)
    partition = node.config.get("partition_by") or {}
    table = Table(
        layer,
        node.name,
        column_types(query, catalog),
        partition.get("field"),
        partition.get("granularity") == "month",
        is_windowed=not partition and _follows_window(reads, tables),
    )
    tables[relation] = table
    catalog.add(relation, table.types, table.partition_column)
    if node.config.materialized != "incremental":
        return Step(node.name, "model", layer, [reads])
    return Step(node.name, "model", layer, [reads, _merge(relation, table, window)])


def _merge(relation: str, table: Table, window: Window) -> frozenset[Read]:
    """What replacing the window's partitions reads, besides the query that first fills a temporary table.

    The temporary table is read whole, and BigQuery bills every column of the partitions that are replaced. Both hold
    the window's days; the names tell them apart.
    """
    replaced = Days(partition(table, window.start), window.end)
    columns = frozenset(table.types)
    return frozenset({Read(relation, columns, replaced), Read(temporary(relation), columns, replaced)})


def temporary(relation: str) -> str:
    return f"{relation}__dbt_tmp"


def lasting(relation: str) -> str:
    """The table whose rows a temporary one holds; others are their own."""
    return relation.removesuffix("__dbt_tmp")


def partition(table: Table, day: date) -> date:
    """The first day of the partition that a day falls into."""
    return day.replace(day=1) if table.by_month else day


def _follows_window(reads: frozenset[Read], tables: dict[str, Table]) -> bool:
    """Whether a table that is made anew holds the window's days: it reads some days only, or what does."""
    return any(read.days != EVER or tables[read.relation].is_windowed for read in reads)


# --- dbt ---------------------------------------------------------------------------------------------------


def _compiled(workspace: Workspace, window: Window) -> tuple[dict[str, Any], dict[str, Any]]:
    # In a folder of its own: nothing that a run has parsed or compiled is replaced.
    workspace = replace(workspace, scenario="", data=workspace.data / "dbt" / "estimate").on(BIGQUERY)
    days = {"window_start": window.start.isoformat(), "window_end": window.end.isoformat()}
    quiet = ["--log-level", "none", "--log-level-file", "none", "--quiet", "--no-write-json"]
    with _no_project():
        manifest = json.loads(prepare(workspace).read_bytes())
        result = invoke(
            workspace, [*quiet, "compile", "--no-populate-cache", "--no-introspect", "--vars", json.dumps(days)]
        )
    if not result.success:
        raise ApportionError(
            f"the models cannot be compiled for BigQuery: {result.exception}",
            "mend the model or macro that the message names",
        )
    return manifest, {one.node.unique_id: one.node for one in result.result.results}


@contextlib.contextmanager
def _no_project() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(PLACEHOLDERS)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _given(manifest: dict[str, Any]) -> Iterator[tuple[str, Table]]:
    """The tables that no model makes: what was landed, and the seeds."""
    for source in (one for one in manifest["sources"].values() if one["source_name"] == LANDING):
        types = {column.name: bigquery_type(column.type) for column in SCHEMAS[source["name"]]}
        partition = None if source["name"] in WHOLE_TABLES else "date"
        yield _plain(source["relation_name"]), Table(LANDING, source["name"], types, partition)
    for seed in (one for one in manifest["nodes"].values() if one["resource_type"] == "seed"):
        types = {name: kind.upper().partition("(")[0] for name, kind in seed["config"]["column_types"].items()}
        yield _plain(seed["relation_name"]), Table(SEEDS, seed["name"], types)


def _ordered(manifest: dict[str, Any]) -> Iterator[str]:
    graph = {
        name: one["depends_on"]["nodes"] for name, one in manifest["nodes"].items() if one["resource_type"] != "seed"
    }
    return iter(tuple(TopologicalSorter(graph).static_order()))


def _plain(relation: str) -> str:
    return relation.replace("`", "")
