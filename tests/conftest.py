"""What several rooms of the test house share."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestration import dbt
from orchestration.workspace import Workspace


@pytest.fixture(scope="session")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The parsed dbt project, as `manifest.json` tells it. Parsed once: it takes seconds and needs no warehouse."""
    workspace = Workspace.locate(data=tmp_path_factory.mktemp("parsed"))
    return json.loads(dbt.prepare(workspace).read_text())
