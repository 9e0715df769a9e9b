"""GPU telemetry in Parquet files with dcgm-exporter's names, one row per GPU and sampling instant.

This is the only bulk table (tens of millions of rows a month), so nothing is copied: the SELECT reads the
files themselves, and landing a day is one pass from Parquet to Parquet. Blank values stay as they are
delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import duckdb
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.sql import constant, file_literal, first_reason, identifier, literal, quoted
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
        described = [_describe(con, delivery) for delivery in deliveries]
        selects = [_select(source, file, d, described[file].types) for file, d in enumerate(deliveries)]
        return Reading(
            " union all ".join(selects),
            [facts.rows for facts in described],
            proven={file: facts.proven for file, facts in enumerate(described) if facts.proven},
        )

    return [Feed("gpu_samples", source.path, read)]


@dataclass(frozen=True)
class _Facts:
    """What a Parquet file says about itself in its footer."""

    types: dict[str, str]
    rows: int
    proven: date | None


def _describe(con: DuckDBPyConnection, delivery: Delivery) -> _Facts:
    path = file_literal(delivery.path)
    try:
        types = {name: kind for name, kind, *_ in con.execute(f"describe from read_parquet({path})").fetchall()}
        groups = con.execute(
            f"""
            select path_in_schema, row_group_num_rows, stats_null_count, stats_min_value, stats_max_value
            from parquet_metadata({path}) where path_in_schema in ({quoted(REQUIRED)})
            """
        ).fetchall()
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
    rows = sum(count for name, count, *_ in groups if name == "timestamp")
    proven = _proven_day(types, groups)
    if proven and not _has_statistics(groups, "gpu"):
        # A narrow column, quickly read where its writer left the statistics out.
        odd = con.execute(f"select count(*) from read_parquet({path}) where gpu is null or gpu < 0").fetchall()
        proven = None if odd[0][0] else proven
    return _Facts(types, rows, proven)


Group = tuple[str, int, int | None, str | None, str | None]
"""Column, rows, nulls, least and greatest value of a row group."""


def _has_statistics(groups: list[Group], column: str) -> bool:
    return all(low is not None for name, _, _, low, _ in groups if name == column)


def _proven_day(types: dict[str, str], groups: list[Group]) -> date | None:
    """The one day of a file without bad rows, if the statistics of its row groups are enough to know."""
    whole = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT")
    if not types["timestamp"].startswith("TIMESTAMP") or types["gpu"] not in whole:
        return None
    if any(types.get(field) == "VARCHAR" for field in GAUGES.values()):
        return None
    found = set()
    for name, _, nulls, low, high in groups:
        if name == "gpu":
            if low is not None and (nulls != 0 or low.startswith("-")):
                return None
        elif nulls != 0 or not low or not high:
            return None
        elif name == "timestamp":
            found |= {low[:10], high[:10]}
    return date.fromisoformat(found.pop()) if len(found) == 1 else None


def _select(source: TelemetrySource, file: int, delivery: Delivery, types: dict[str, str]) -> str:
    def column(name: str, otherwise: str) -> str:
        return f"t.{identifier(name)}" if name in types else f"cast(null as {otherwise})"

    def text(name: str) -> str:
        value = column(name, "varchar")
        return f"nullif({value if types.get(name, 'VARCHAR') == 'VARCHAR' else f'cast({value} as varchar)'}, '')"

    def number(name: str, kind: str) -> str:
        return column(name, kind) if types.get(name) == kind.upper() else f"try_cast({column(name, kind)} as {kind})"

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
            {constant(source.cluster)} as cluster_id,
            {text("Hostname")} as node_name,
            {number("gpu", "bigint")} as gpu_index,
            {text("GPU_I_ID")} as gpu_instance,
            coalesce({text("hpc_job")}, {pod}) as part_id,
            {instant} as sampled_at,
            cast({source.interval_seconds * 1000} as bigint) as interval_ms,
            {gauges},
            {reason} as bad_reason,
            cast(null as varchar) as skip_reason
        from read_parquet({file_literal(delivery.path)}, file_row_number = true) as t
    """
