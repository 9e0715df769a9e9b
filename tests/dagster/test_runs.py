"""What a run leaves in Dagster: checks with results, figures on each asset, and failures that name the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from orchestration import progress
from orchestration.dbt import environment_of
from orchestration.defs import definitions_of
from orchestration.errors import ApportionError
from orchestration.runs import instance_of, run_pipeline
from orchestration.workspace import Workspace
from tests.golden.company import make_workspace
from tests.warehouses import GOLDEN, tables_of


def figures(workspace: Workspace, *path: str) -> dict[str, Any]:
    """The metadata of an asset's latest materialization."""
    with instance_of(workspace) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(path))
    assert event is not None
    return {name: entry.value for name, entry in event.asset_materialization.metadata.items()}


def test_every_check_has_a_result_and_those_of_dbt_pass(golden: Workspace) -> None:
    checks = definitions_of(golden).resolve_asset_graph().asset_check_keys
    with instance_of(golden) as instance:
        latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(checks))
    assert checks - latest.keys() == set()
    failed = {key for key, record in latest.items() if record.status != AssetCheckExecutionRecordStatus.SUCCEEDED}
    assert failed == set()


def test_sources_facts_and_the_published_copy_carry_their_figures(golden: Workspace) -> None:
    bill = figures(golden, "raw", "cloud")
    assert (bill["rows"], bill["quarantined"], bill["billed_usd"]) == (11, 0, "326.500000000")
    assert bill["bytes"] > 0
    facts = figures(golden, "core", "fct_cost_allocations")
    assert facts["allocatable_USD"] == facts["allocated_USD"] == "617.300000000"
    assert (facts["difference_USD"], facts["difference_EUR"]) == ("0.000000000", "0.000000000")
    assert facts["dagster/partition_row_count"] == 79
    assert figures(golden, "published", "marts")["tables"] > 20


def test_policy_and_dimensions_can_be_made_without_days_and_then_no_day_is_made(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    definitions = definitions_of(workspace)
    reference = dg.AssetSelection.groups("reference")
    with environment_of(workspace), instance_of(workspace) as instance:
        run = dg.materialize(
            definitions.assets or (),
            selection=reference,
            instance=instance,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    made = {event.asset_key for event in run.get_asset_materialization_events()}
    assert made == reference.resolve(definitions.resolve_asset_graph())
    tables = tables_of(workspace.warehouse).by_name
    assert tables["dim_policies"].num_rows > 0
    assert [name for name, table in tables.items() if "usage_date" in table.column_names and table.num_rows] == []


def test_broken_policy_rows_fail_the_run_and_are_named(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    break_row(workspace, "idle_policies", "gpu-cloud,*,proportional", "gpu-cluod,*,proportional")
    break_row(workspace, "teams", "CC-2,4,2026-01-01,,", "CC-2,4,2026-05-01,2026-04-01,")
    said: list[str] = []
    progress.listen(said.append)
    with pytest.raises(ApportionError) as failure:
        run_pipeline(workspace, GOLDEN)
    told = failure.value.message
    assert "row idle_policies/gpu-cluod/*@2026-01-01: pool_id = gpu-cluod is not in seeds/policy/pools.csv" in told
    assert "row teams/nlp@2026-05-01: valid_to is not after valid_from" in told
    assert not workspace.warehouse.exists()
    checks = [dg.AssetCheckKey(dg.AssetKey(["seeds", seed]), f"{seed}_sound_rows") for seed in ("teams", "pools")]
    with instance_of(workspace) as instance:
        (record,) = instance.get_run_records()
        latest = instance.event_log_storage.get_latest_asset_check_execution_by_key(checks)
    assert [latest[check].status.value for check in checks] == ["FAILED", "SUCCEEDED"]
    assert record.dagster_run.status == dg.DagsterRunStatus.FAILURE
    assert not (workspace.published / "marts.duckdb").exists()
    assert said[0] == "landing cloud"
    assert said[-1].startswith("checking the policy"), "whoever watches was told how far it got"


def break_row(workspace: Workspace, seed: str, right: str, wrong: str) -> None:
    path = workspace.seeds / "policy" / f"{seed}.csv"
    text = path.read_text(encoding="utf-8")
    assert right in text
    path.write_text(text.replace(right, wrong), encoding="utf-8")
