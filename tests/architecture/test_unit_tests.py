"""dbt's own unit tests: the few that explain the arithmetic beside the models."""

from __future__ import annotations

from orchestration.dbt import invoke
from orchestration.workspace import Workspace


def test_the_unit_tests_beside_the_models_pass(golden: Workspace) -> None:
    result = invoke(golden, ["--quiet", "test", "--select", "test_type:unit"])
    assert result.success
    assert len(result.result.results) >= 3
