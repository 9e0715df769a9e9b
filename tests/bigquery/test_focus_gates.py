"""FOCUS out on BigQuery: the model passes the same two gates as all others, though no ordinary run builds it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from orchestration.dbt import Window, build
from orchestration.publish.focus import MODEL
from orchestration.workspace import Workspace
from tests.bigquery.gates import Warehouse, analyse, compare
from tests.bigquery.project import compiled
from tests.oracle.worlds import pack, world, write_workspace

SEED = 7
INDEXES = range(7, 12)


def test_focus_out_is_googlesql_and_gives_the_same_rows_there(tmp_path, record_property):
    """On random companies, which have credits, several currencies and lines that cost nothing."""
    worlds = [world(SEED * 1_000_003 + index, index) for index in INDEXES]
    write_workspace(pack(worlds), tmp_path)
    workspace = Workspace(tmp_path / "sources.yml", tmp_path / "seeds", tmp_path / "data", focus=True)
    days = Window(worlds[0].day, worlds[-1].day + timedelta(days=1))
    build(workspace, days, tests=False)

    project = compiled(workspace, days)
    (model,) = (one for one in project.models if one.name == MODEL)
    known = project.given | {one.relation: one.contract for one in project.models if one.contract}
    read = {name: columns for name, columns in known.items() if _quoted(name) in model.sql}
    alone = replace(project, nodes=[model], given=read)
    outcome, _ = analyse(alone)
    assert outcome.problems == []

    found = compare(alone, Warehouse(project, workspace.data, workspace.warehouse))
    record_property("gate", f"evaluator, FOCUS out: {found}")
    assert found.problems == []
    assert found.rows > 40


def _quoted(relation: str) -> str:
    return ".".join(f"`{part}`" for part in relation.split("."))
