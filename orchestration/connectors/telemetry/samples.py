"""What every file of GPU samples has to say, whatever it calls it, and how its texts are judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from orchestration.connectors.base import Delivery
from orchestration.connectors.local_time import in_order, instant, is_ambiguous
from orchestration.connectors.sql import constant, first_reason, literal, unreadable
from orchestration.errors import ApportionError
from orchestration.settings import ColumnFrom, TelemetrySource

GAUGES = {
    "util_percent": "DCGM_FI_DEV_GPU_UTIL",
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "power_watts": "DCGM_FI_DEV_POWER_USAGE",
    "energy_counter_mj": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "memory_used_mib": "DCGM_FI_DEV_FB_USED",
}
USUAL_NAMES = {
    "timestamp": "timestamp",
    "node": "Hostname",
    "gpu": "gpu",
    "gpu_instance": "GPU_I_ID",
    "job": "hpc_job",
    "namespace": "namespace",
    "pod": "pod",
    **GAUGES,
}
"""Our columns, and what dcgm-exporter calls them."""
OF_A_JOB = "coalesce({job}, {namespace} || '/' || {pod})"
ROW = (
    *("file", "line", "cluster_id", "node_name", "gpu_index", "gpu_instance", "part_id", "sampled_at"),
    *(*GAUGES, "bad_reason"),
)
"""The columns of a sample before it is known how much time it stands for."""
NOT_A_TIME = (
    "sampled_at is null or sampled_at < timestamptz '1970-01-01' or sampled_at >= timestamptz '9999-01-01'",
    literal("timestamp is missing or not a time"),
)


@dataclass(frozen=True)
class Place:
    """Where a file has one of our columns."""

    column: str
    factor: float = 1.0


def places(source: TelemetrySource, delivery: Delivery, names: Sequence[str]) -> dict[str, Place]:
    """Our columns by the file's own names: what the settings say, else dcgm-exporter's name, else ours."""
    own = {name.strip().lower(): name for name in names}
    found: dict[str, Place] = {}
    for ours, usual in USUAL_NAMES.items():
        if said := source.columns.get(ours):  # type: ignore[call-overload]
            place = Place(said.column, said.factor) if isinstance(said, ColumnFrom) else Place(said)
            if place.column.strip().lower() not in own:
                raise _missing(delivery, place.column, f"correct 'columns.{ours}' of the source")
            found[ours] = Place(own[place.column.strip().lower()], place.factor)
        elif column := own.get(usual.lower()) or own.get(ours):
            found[ours] = Place(column)
    fixed_node = source.node or source.node_from_path
    for ours in ("timestamp", "gpu") if fixed_node else ("timestamp", "node", "gpu"):
        if ours not in found:
            way = "name the column in 'columns' of the source, or deliver the file with dcgm-exporter's names"
            raise _missing(delivery, USUAL_NAMES[ours], way if ours != "node" else f"{way}, or give 'node_from_path'")
    return found


def _missing(delivery: Delivery, column: str, remedy: str) -> ApportionError:
    return ApportionError(f"{delivery.path}: missing column {column}", remedy)


def node_of(source: TelemetrySource, delivery: Delivery) -> str | None:
    """The node of a whole file, as the settings or its path say."""
    if source.node_from_path is None:
        return source.node
    found = re.search(source.node_from_path, delivery.path.as_posix())
    if not found or not found[1]:
        raise ApportionError(
            f"{delivery.path}: 'node_from_path' ({source.node_from_path}) finds no node in this path",
            "correct the pattern, or rename the file",
        )
    return found[1]


def nodes_of(source: TelemetrySource, deliveries: Sequence[Delivery], otherwise: str) -> str:
    """SQL for the node of a row by its file, or `otherwise` where the files speak for themselves."""
    nodes = [(file, node_of(source, delivery)) for file, delivery in enumerate(deliveries)]
    known = " ".join(f"when {file} then {literal(node)}" for file, node in nodes if node is not None)
    return f"case file {known} else {otherwise} end" if known else otherwise


def epoch(number: str) -> str:
    """SQL for the instant of an epoch in s, ms, µs or ns: each would be absurdly late in the unit before it."""
    powers = " ".join(f"when {number} >= 1e{17 - 3 * step} then {number} / 1e{9 - 3 * step}" for step in range(3))
    return f"to_timestamp(case {powers} else {number} end)"


def judged(source: TelemetrySource, texts: str, factors: dict[str, float]) -> str:
    """Samples as text (file, line, our columns, `node` and `problem`) to typed ones, with what is wrong with each.

    `is_zoneless` and `is_ambiguous` say what might be meant otherwise.
    """
    zone = source.timezone or "UTC"
    number = "try_cast(timestamp as double)"
    is_epoch = r"regexp_full_match(timestamp, '[0-9]+(\.[0-9]+)?')"
    names_zone = "regexp_full_match(timestamp, '.*:.*([zZ]| ?UTC|[+-][0-9][0-9](:?[0-9][0-9])?)')"
    local = f"case when not {is_epoch} and not {names_zone} then try_cast(timestamp as timestamp) end"
    gauges = ", ".join(
        f"try_cast({gauge} as double){f' * {factors[gauge]!r}' if factors.get(gauge, 1) != 1 else ''} as {gauge}"
        for gauge in GAUGES
    )
    reason = first_reason(
        ("problem is not null", "problem"),
        NOT_A_TIME,
        ("node_name is null", literal("node is missing")),
        ("gpu_index is null or gpu_index < 0", literal("gpu is not the number of a GPU")),
        *(unreadable(f"t.{gauge}", f"try_cast(t.{gauge} as double)", gauge, "a number") for gauge in GAUGES),
    )
    return f"""
        select
            file,
            line,
            {constant(source.cluster)} as cluster_id,
            node as node_name,
            try_cast(gpu as bigint) as gpu_index,
            gpu_instance,
            {OF_A_JOB.format(job="job", namespace="namespace", pod="pod")} as part_id,
            case
                when {is_epoch} then {epoch(number)}
                when {names_zone} then try_cast(timestamp as timestamptz)
                else {instant(zone)}
            end as sampled_at,
            {gauges},
            {reason} as bad_reason,
            local is not null as is_zoneless,
            coalesce({is_ambiguous(zone)}, false) as is_ambiguous
        from ({in_order(f"select *, {local} as local from ({texts})", "file, node, gpu")}) as t
    """
