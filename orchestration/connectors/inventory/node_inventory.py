"""Node inventory: which node was in which pool, with what in it, from when to when (a CSV file)."""

from __future__ import annotations

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.sql import first_reason, literal, missing, thousandths, unreadable, utc
from orchestration.connectors.tables import by_name, load_table
from orchestration.landing.schemas import GPU_UNITS_PER_GPU
from orchestration.settings import InventorySource

REQUIRED = ("cluster", "node", "gpus", "cores", "memory_gib", "from", "to")
OPTIONAL = ("resource_id", "provider", "instance_type", "pool", "gpu_model")


def feeds(source: InventorySource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        columns = (*REQUIRED, *OPTIONAL)
        loaded = load_table(con, "node_lines", deliveries, columns, by_name(REQUIRED, OPTIONAL, "node inventory"))
        return Reading(_select(), loaded.counts, loaded.rejects, found=loaded.found)

    return [Feed("node_inventory", source.path, read)]


def _scaled(column: str, factor: int) -> str:
    return f"cast(round(try_cast({column} as decimal(28, 9)) * {factor}) as bigint)"


def _select() -> str:
    reason = first_reason(
        missing("l.cluster", "cluster"),
        missing("l.node", "node"),
        *(missing(f"l.{column}", column) for column in ("gpus", "cores", "memory_gib")),
        unreadable("l.gpus", "gpu_units", "gpus", "a number"),
        unreadable("l.cores", "cpu_millicores", "cores", "a number"),
        unreadable("l.memory_gib", "memory_mib", "memory_gib", "a number"),
        ("least(gpu_units, cpu_millicores, memory_mib) < 0", literal("an amount is negative")),
        missing('l."from"', "from"),
        unreadable('l."from"', "valid_from_at", "from", "a time"),
        unreadable('l."to"', "valid_to_at", "to", "a time"),
        ("valid_to_at <= valid_from_at", literal("ends before it starts, or when it starts")),
    )
    return f"""
        select
            l.file,
            l.line,
            l.cluster as cluster_id,
            l.node as node_name,
            l.resource_id as resource_id,
            l.provider as provider,
            l.instance_type as instance_type,
            l.pool as pool_id,
            l.gpu_model as gpu_model,
            {_scaled("l.gpus", GPU_UNITS_PER_GPU)} as gpu_units,
            {thousandths("l.cores")} as cpu_millicores,
            {_scaled("l.memory_gib", 1024)} as memory_mib,
            {utc('l."from"')} as valid_from_at,
            {utc('l."to"')} as valid_to_at,
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from node_lines as l
    """
