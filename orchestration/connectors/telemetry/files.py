"""GPU telemetry in Parquet files with dcgm-exporter's names, one row per GPU and sampling instant.

This is the only bulk table (tens of millions of rows a month), so nothing is copied: the SELECT reads the files
themselves, and landing a day is one pass from Parquet to Parquet. Blank values stay as they are delivered.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.sql import first_reason, identifier, literal
from orchestration.errors import ApportionError
from orchestration.settings import TelemetrySource

REQUIRED = ("timestamp", "Hostname", "gpu")
GAUGES = {
    "util_percent": "DCGM_FI_DEV_GPU_UTIL",
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "power_watts": "DCGM_FI_DEV_POWER_USAGE",
    "energy_counter_mj": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "memory_used_mib": "DCGM_FI_DEV_FB_USED",
}


def feeds(source: TelemetrySource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        selects, counts = [], []
        for file, delivery in enumerate(deliveries):
            types, rows = _describe(con, delivery)
            selects.append(_select(source, file, delivery, types))
            counts.append(rows)
        return Reading(" union all ".join(selects), counts)

    return [Feed("gpu_samples", source.path, read)]


def _describe(con: DuckDBPyConnection, delivery: Delivery) -> tuple[dict[str, str], int]:
    path = literal(str(delivery.path))
    try:
        types = {
            name: kind for name, kind, *_ in con.execute(f"describe from read_parquet({path})").fetchall()
        }
        rows = con.execute(f"select sum(num_rows) from parquet_file_metadata({path})").fetchall()[0][0]
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise ApportionError(
            f"{delivery.path}: not a readable Parquet file: {reason}",
            "deliver it again, or move it out of the inbox",
        ) from error
    absent = [name for name in REQUIRED if name not in types]
    if absent:
        raise ApportionError(
            f"{delivery.path}: missing column {', '.join(absent)}",
            "deliver the file with dcgm-exporter's column names",
        )
    return types, int(rows)


def _select(source: TelemetrySource, file: int, delivery: Delivery, types: dict[str, str]) -> str:
    def column(name: str, otherwise: str) -> str:
        return f"t.{identifier(name)}" if name in types else f"cast(null as {otherwise})"

    def text(name: str) -> str:
        value = column(name, "varchar")
        return (
            f"nullif({value if types.get(name, 'VARCHAR') == 'VARCHAR' else f'cast({value} as varchar)'}, '')"
        )

    def number(name: str, kind: str) -> str:
        return (
            column(name, kind)
            if types.get(name) == kind.upper()
            else f"try_cast({column(name, kind)} as {kind})"
        )

    numeric = types["timestamp"] in ("BIGINT", "INTEGER", "UBIGINT", "DOUBLE", "FLOAT")
    # Epoch numbers are seconds or milliseconds; as seconds, the latter would be after the year 5000.
    epoch = "to_timestamp(case when t.timestamp >= 1e11 then t.timestamp / 1000 else t.timestamp end)"
    instant = epoch if numeric else "try_cast(t.timestamp as timestamptz)"
    pod = f"{text('namespace')} || '/' || {text('pod')}"
    reason = first_reason(
        (
            "sampled_at is null or sampled_at < timestamptz '1970-01-01' or sampled_at >= timestamptz '9999-01-01'",
            literal("timestamp is missing or not a time"),
        ),
        ("node_name is null", literal("Hostname is missing")),
        ("gpu_index is null or gpu_index < 0", literal("gpu is not the number of a GPU")),
        *(
            (f"t.{field} is not null and {gauge} is null", literal(f"{field} is not a number"))
            for gauge, field in GAUGES.items()
            if types.get(field) == "VARCHAR"
        ),
    )
    gauges = ", ".join(f"{number(field, 'double')} as {gauge}" for gauge, field in GAUGES.items())
    return f"""
        select
            {file} as file,
            t.file_row_number + 1 as line,
            {literal(source.cluster)} as cluster_id,
            {text("Hostname")} as node_name,
            {number("gpu", "bigint")} as gpu_index,
            {text("GPU_I_ID")} as gpu_instance,
            coalesce({text("hpc_job")}, {pod}) as part_id,
            {instant} as sampled_at,
            cast({source.interval_seconds * 1000} as bigint) as interval_ms,
            {gauges},
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from read_parquet({literal(str(delivery.path))}, file_row_number = true) as t
    """
