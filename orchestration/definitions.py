"""What Dagster loads: the workspace that the environment names."""

from __future__ import annotations

from orchestration.defs import definitions_of
from orchestration.workspace import Workspace

defs = definitions_of(Workspace.locate())
