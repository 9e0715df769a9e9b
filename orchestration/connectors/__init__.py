"""Connectors: one module per kind of source, which knows its vendor's format and nothing else."""

from __future__ import annotations

from orchestration.connectors.base import Feed
from orchestration.connectors.billing import aws_cur, azure, cost_sheet, focus, gcp
from orchestration.connectors.inventory import node_inventory
from orchestration.connectors.license import seats
from orchestration.connectors.scheduler import kubernetes, opencost, slurm
from orchestration.connectors.storage import storage_usage
from orchestration.connectors.telemetry import dcgm, files
from orchestration.settings import Source

_KINDS = {
    "focus": focus,
    "aws_cur": aws_cur,
    "azure_cost": azure,
    "gcp_export": gcp,
    "cost_sheet": cost_sheet,
    "slurm": slurm,
    "kubernetes": kubernetes,
    "opencost": opencost,
    "files": files,
    "dcgm": dcgm,
    "storage_usage": storage_usage,
    "seats": seats,
    "node_inventory": node_inventory,
}


def feeds(source: Source) -> list[Feed]:
    """The landing tables that a source fills, each with its files and its reader."""
    return _KINDS[source.kind].feeds(source)
