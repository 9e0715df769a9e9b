"""dbt's own unit tests, the few that explain the arithmetic beside the models, and what is said of columns there."""

from __future__ import annotations

from typing import Any

import duckdb

from orchestration.dbt import invoke
from orchestration.workspace import Workspace


def test_the_unit_tests_beside_the_models_pass(golden: Workspace) -> None:
    result = invoke(golden, ["--quiet", "test", "--select", "test_type:unit"])
    assert result.success
    assert len(result.result.results) >= 12


def test_every_described_column_exists(golden: Workspace, manifest: dict[str, Any]) -> None:
    with duckdb.connect(str(golden.warehouse), read_only=True) as warehouse:
        built = set(warehouse.execute("select table_name, column_name from information_schema.columns").fetchall())
    described = {
        (node["name"], column)
        for node in manifest["nodes"].values()
        if node["resource_type"] in ("model", "seed")
        for column in node["columns"]
    }
    assert described - built == set()
