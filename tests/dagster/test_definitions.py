"""What Dagster shows: it loads anywhere, every asset has a place and an owner, and changed lineage shows in review."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from orchestration.defs import definitions_of
from orchestration.workspace import PROJECT_ROOT, Workspace

SNAPSHOT = Path(__file__).parent / "asset_graph.txt"
UPDATE = "APPORTION_UPDATE_SNAPSHOT"

LOAD_WITHOUT_NETWORK = """
import socket

def refuse(*arguments):
    raise AssertionError(f"the definitions asked for the network: {arguments}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from orchestration.definitions import defs
print(len(defs.resolve_asset_graph().get_all_asset_keys()), "assets")
"""


@pytest.fixture(scope="module")
def definitions(project: Workspace) -> dg.Definitions:
    return definitions_of(project)


@pytest.fixture(scope="module")
def graph(definitions: dg.Definitions) -> Any:
    return definitions.resolve_asset_graph()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with nothing in it but a path to programs, a home, and an empty data folder."""
    home = tmp_path_factory.mktemp("bare")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "APPORTION_DATA": str(home / "data")}


def run_python(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_definitions_load_without_warehouse_network_or_secret(bare: dict[str, str], graph: Any) -> None:
    printed = run_python(bare, "-c", LOAD_WITHOUT_NETWORK)
    assert f"{len(graph.get_all_asset_keys())} assets" in printed
    assert not (Path(bare["APPORTION_DATA"]) / "warehouse.duckdb").exists()


def test_dagster_finds_the_definitions_valid(bare: dict[str, str]) -> None:
    printed = run_python(bare, "-m", "dagster", "definitions", "validate", "-m", "orchestration.definitions")
    assert "All code locations passed validation" in printed


def test_the_asset_graph_is_the_one_that_was_reviewed(graph: Any) -> None:
    now = described(graph)
    if os.environ.get(UPDATE):
        SNAPSHOT.write_text(now, encoding="utf-8")
    before = SNAPSHOT.read_text(encoding="utf-8")
    assert now.splitlines() == before.splitlines(), (
        f"the lineage changed. If that was meant, run this test once with {UPDATE}=1 and commit {SNAPSHOT.name}"
    )


def described(graph: Any) -> str:
    """A line per asset (key, group, whether it has days) and below it a line per asset that it reads."""
    lines = []
    for key in sorted(graph.get_all_asset_keys()):
        node = graph.get(key)
        lines.append(f"{key.to_user_string()}  [{node.group_name}{', by day' if node.partitions_def else ''}]")
        lines += [f"    <- {parent.to_user_string()}" for parent in sorted(node.parent_keys)]
    return "\n".join(lines) + "\n"


def test_every_asset_has_a_group_an_owner_and_a_description(graph: Any) -> None:
    nodes = [graph.get(key) for key in graph.get_all_asset_keys()]
    groups = {"raw", "reference", "daily", "reporting", "published", "exports"}
    assert [n.key for n in nodes if n.group_name not in groups or not n.owners or not n.description] == []


def test_only_one_run_writes_at_a_time(definitions: dg.Definitions) -> None:
    written = [asset for asset in definitions.assets or () if isinstance(asset, dg.AssetsDefinition)]
    assert {asset.op.pool for asset in written} == {"warehouse"}


def test_every_dbt_test_is_an_asset_check(graph: Any, manifest: dict[str, Any]) -> None:
    tests = {node["name"] for node in manifest["nodes"].values() if node["resource_type"] == "test"}
    checks = {key.name for key in graph.asset_check_keys}
    assert tests - checks == set()
    assert checks - tests == {"every_day_has_rows", "nothing_quarantined"}


def test_lineage_runs_from_every_source_to_what_is_published(graph: Any) -> None:
    upstream = graph.upstream_key_iterator(dg.AssetKey(["published", "marts"]))
    sources = {key for key in graph.get_all_asset_keys() if key.path[0] in ("raw", "seeds")}
    assert sources - set(upstream) == set()
