"""Connectors: one module per kind of source, which knows its vendor's format and nothing else."""

from __future__ import annotations

from orchestration.connectors.base import Feed
from orchestration.connectors.billing import cost_sheet, focus
from orchestration.connectors.inventory import node_inventory
from orchestration.connectors.license import seats
from orchestration.connectors.scheduler import kubernetes, slurm
from orchestration.connectors.storage import storage_usage
from orchestration.connectors.telemetry import files
from orchestration.settings import Source

_KINDS = {
    "focus": focus,
    "cost_sheet": cost_sheet,
    "slurm": slurm,
    "kubernetes": kubernetes,
    "files": files,
    "storage_usage": storage_usage,
    "seats": seats,
    "node_inventory": node_inventory,
}


def feeds(source: Source) -> list[Feed]:
    """The landing tables that a source fills, each with its files and its reader."""
    return _KINDS[source.kind].feeds(source)
