"""GPU samples in Parquet, one row per GPU and sampling instant, with dcgm-exporter's names or those of the settings.

This is the only bulk table (tens of millions of rows a month), so nothing is copied: the SELECT reads the files
themselves, and landing a day is one pass from Parquet to Parquet. Blank values stay as they are delivered.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import duckdb
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found
from orchestration.connectors.local_time import in_order, instant
from orchestration.connectors.sql import constant, file_literal, first_reason, identifier, literal, quoted
from orchestration.connectors.tables import parquet_types, unreadable_parquet
from orchestration.connectors.telemetry.samples import GAUGES, NOT_A_TIME, OF_A_JOB, Place, epoch, node_of, places
from orchestration.settings import TelemetrySource

WHOLE = ("BIGINT", "INTEGER", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT")
NUMBERS = (*WHOLE, "HUGEINT", "DOUBLE", "FLOAT")


@dataclass(frozen=True)
class Facts:
    """What a Parquet file says about itself in its footer."""

    types: dict[str, str]
    places: dict[str, Place]
    rows: int
    proven: date | None
    found: Found

    @property
    def has_text_times(self) -> bool:
        return self.types[self.places["timestamp"].column] == "VARCHAR"


def describe(con: DuckDBPyConnection, source: TelemetrySource, delivery: Delivery) -> Facts:
    types = parquet_types(con, delivery)
    own = places(source, delivery, list(types))
    needed = {ours: own[ours].column for ours in ("timestamp", "node", "gpu") if ours in own}
    path = file_literal(delivery.path)
    try:
        groups = con.execute(
            f"""
            select path_in_schema, row_group_num_rows, stats_null_count, stats_min_value, stats_max_value
            from parquet_metadata({path}) where path_in_schema in ({quoted(needed.values())})
            """
        ).fetchall()
        rows = sum(count for name, count, *_ in groups if name == needed["timestamp"])
        proven = _proven_day(source, types, own, groups)
        if proven and not _has_statistics(groups, needed["gpu"]):
            # A narrow column, quickly read where its writer left the statistics out.
            gpu = identifier(needed["gpu"])
            odd = con.execute(f"select count(*) from read_parquet({path}) where {gpu} is null or {gpu} < 0").fetchall()
            proven = None if odd[0][0] else proven
    except duckdb.Error as error:
        raise unreadable_parquet(delivery, error) from error
    return Facts(types, own, rows, proven, _found(source, types, own))


def _found(source: TelemetrySource, types: dict[str, str], own: dict[str, Place]) -> Found:
    used = {place.column for place in own.values()}
    kind = types[own["timestamp"].column]
    doubts = []
    if kind.startswith("TIMESTAMP") and "TIME ZONE" not in kind and source.timezone is None:
        doubts.append("the times name no zone and are taken as UTC (see 'timezone')")
    if source.interval_seconds and "energy_counter_mj" in own and "power_watts" not in own:
        doubts.append("there is an energy counter and no power: it is only used without 'interval_seconds'")
    return Found("GPU samples, Parquet", tuple(name for name in types if name not in used), tuple(doubts))


Group = tuple[str, int, int | None, str | None, str | None]
"""Column, rows, nulls, least and greatest value of a row group."""


def _has_statistics(groups: list[Group], column: str) -> bool:
    return all(low is not None for name, _, _, low, _ in groups if name == column)


def _proven_day(
    source: TelemetrySource, types: dict[str, str], own: dict[str, Place], groups: list[Group]
) -> date | None:
    """The one day of a file without bad rows, if the statistics of its row groups are enough to know."""
    kind = types[own["timestamp"].column]
    if not kind.startswith("TIMESTAMP") or types[own["gpu"].column] not in WHOLE:
        return None
    if _is_local(source, kind):
        return None
    if any(types[own[gauge].column] == "VARCHAR" for gauge in GAUGES if gauge in own):
        return None
    found = set()
    for name, _, nulls, low, high in groups:
        if name == own["gpu"].column:
            if low is not None and (nulls != 0 or low.startswith("-")):
                return None
        elif nulls != 0 or not low or not high:
            return None
        elif name == own["timestamp"].column:
            found |= {low[:10], high[:10]}
    return date.fromisoformat(found.pop()) if len(found) == 1 else None


def select(source: TelemetrySource, file: int, delivery: Delivery, facts: Facts) -> str:
    """SQL for the samples of one file, typed and judged, straight from it."""
    types, own = facts.types, facts.places

    def kind(ours: str) -> str:
        return types[own[ours].column] if ours in own else ""

    def column(ours: str, otherwise: str) -> str:
        return f"t.{identifier(own[ours].column)}" if ours in own else f"cast(null as {otherwise})"

    def text(ours: str) -> str:
        value = column(ours, "varchar")
        return f"nullif({value if kind(ours) in ('', 'VARCHAR') else f'cast({value} as varchar)'}, '')"

    def number(ours: str, to: str) -> str:
        value = column(ours, to) if kind(ours) == to.upper() else f"try_cast({column(ours, to)} as {to})"
        factor = own[ours].factor if ours in own else 1
        return value if factor == 1 else f"{value} * {factor!r}"

    node = node_of(source, delivery)
    reason = first_reason(
        NOT_A_TIME,
        ("node_name is null", literal(f"{own['node'].column if 'node' in own else 'node'} is missing")),
        ("gpu_index is null or gpu_index < 0", literal(f"{own['gpu'].column} is not the number of a GPU")),
        *(
            (
                f"{column(gauge, 'double')} is not null and {gauge} is null",
                literal(f"{own[gauge].column} is not a number"),
            )
            for gauge in GAUGES
            if kind(gauge) == "VARCHAR"
        ),
    )
    gauges = ", ".join(f"{number(gauge, 'double')} as {gauge}" for gauge in GAUGES)
    rows = f"read_parquet({file_literal(delivery.path)}, file_row_number = true)"
    if _is_local(source, kind("timestamp")):
        local = f"select *, try_cast({column('timestamp', 'varchar')} as timestamp) as local from {rows} as t"
        gpu = ", ".join(identifier(own[ours].column) for ours in ("node", "gpu") if ours in own)
        rows = f"({in_order(local, gpu, 'file_row_number')})"
    job = OF_A_JOB.format(job=text("job"), namespace=text("namespace"), pod=text("pod"))
    return f"""
        select
            {file} as file,
            t.file_row_number + 1 as line,
            {constant(source.cluster)} as cluster_id,
            {text("node") if node is None else literal(node)} as node_name,
            {number("gpu", "bigint")} as gpu_index,
            {text("gpu_instance")} as gpu_instance,
            {job} as part_id,
            {_instant(source, column("timestamp", "varchar"), kind("timestamp"))} as sampled_at,
            {gauges},
            {reason} as bad_reason
        from {rows} as t
    """


def _instant(source: TelemetrySource, column: str, kind: str) -> str:
    if kind in NUMBERS:
        return epoch(column)
    return instant(source.timezone) if _is_local(source, kind) else f"try_cast({column} as timestamptz)"


def _is_local(source: TelemetrySource, kind: str) -> bool:
    return source.timezone is not None and kind not in NUMBERS and "TIME ZONE" not in kind
