"""GPU telemetry of dcgm-exporter as it exposes it: scrapes, OpenMetrics, dumps of promtool, answers of Prometheus.

Each field of a GPU is a series of its own; here the fields of one GPU (or MIG instance) at one instant are put side by
side. A sample stands for the time until the next one of its GPU, but never for much more than the usual distance:
after that, nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading
from orchestration.connectors.exposition import ExposedFile, load_samples, reject_series
from orchestration.connectors.sql import first_reason, literal
from orchestration.errors import ApportionError
from orchestration.settings import DcgmSource

NAMES = {
    "util_percent": ("DCGM_FI_DEV_GPU_UTIL", "dcgm_gpu_utilization"),
    "sm_active": ("DCGM_FI_PROF_SM_ACTIVE",),
    "tensor_active": ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",),
    "power_watts": ("DCGM_FI_DEV_POWER_USAGE", "dcgm_power_usage"),
    "energy_counter_mj": (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total",
        "dcgm_total_energy_consumption",
    ),
    "memory_used_mib": ("DCGM_FI_DEV_FB_USED", "dcgm_fb_used"),
}
"""Our columns, and what the exporter calls them in its versions. Some collectors turn all names into small letters."""
METRICS = {spelling: ours for ours, names in NAMES.items() for name in names for spelling in (name, name.lower())}
GAUGE_BLANK = 0x7FFFFFF0
"""The least value that says `no data` (of 32-bit fields); above it are those of other widths, and nothing real."""
COUNTER_BLANK = 1 << 47
"""The same for a counter in mJ, which does pass the blanks of 32-bit fields; no GPU ever draws 39,000 kWh."""
DEFAULT_INTERVAL_MS = 60_000
ENOUGH_DISTANCES = 10
"""From so many on, the distances between a node's samples tell how often it is scraped."""
GPU = "node_name, gpu_index, gpu_instance"


def feeds(source: DcgmSource) -> list[Feed]:
    latest: dict[object, Reading] = {}

    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        # Landing asks again for each day; a file of a whole month need not be read thirty times.
        asked = (id(con), *((delivery.path, delivery.size, delivery.mtime_ns) for delivery in deliveries))
        if asked not in latest:
            latest.clear()
            latest[asked] = _read(con, deliveries, source)
        return latest[asked]

    return [Feed("gpu_samples", source.path, read)]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: DcgmSource) -> Reading:
    exposed = load_samples(con, "dcgm", dict(enumerate(deliveries)), METRICS)
    con.execute(f"create or replace temp table dcgm_series as {_named_series(source)}")
    reason = first_reason(
        ("node_name is null", literal(f"label {source.node_label} is missing")),
        ("gpu_index is null", literal("label gpu is not the number of a GPU")),
    )
    reject_series(con, "dcgm", reason, exposed.rejects)
    for file in exposed.files:
        _refuse_other_metrics(file)
    con.execute(f"create or replace temp table dcgm_points as {_points()}")
    con.execute(f"create or replace temp table dcgm_usual as {_usual(source)}")
    con.execute(f"create or replace temp table dcgm_rows as {_rows(source)}")
    counts = [file.count for file in exposed.files]
    rows = dict(con.execute("select file, count(*) from dcgm_rows group by file").fetchall())
    kept = dict(con.execute("select file, count(*) from dcgm_samples group by file").fetchall())
    return Reading(
        "from dcgm_rows",
        counts,
        exposed.rejects,
        {file.file: file.unasked + kept.get(file.file, 0) - rows.get(file.file, 0) for file in exposed.files},
        found=_found(con, exposed.files),
    )


def _label(name: str) -> str:
    return f"coalesce(nullif(labels['{name}'], ''), nullif(labels['{name.lower()}'], ''))"


def _named_series(source: DcgmSource) -> str:
    """Series with the GPU that they are of and the job or pod that they name.

    Where Prometheus put its own labels first, `pod` is the exporter, and the pod on the GPU is `exported_pod`.
    """
    exported = "nullif(labels['exported_namespace'], '') || '/' || nullif(labels['exported_pod'], '')"
    plain = "nullif(labels['namespace'], '') || '/' || nullif(labels['pod'], '')"
    index = f"coalesce({_label('gpu')}, nullif(regexp_extract({_label('device')}, '^nvidia([0-9]+)$', 1), ''))"
    return f"""
        select series, metric, head,
            {_label(source.node_label)} as node_name,
            case when regexp_full_match({index}, '[0-9]+') then try_cast({index} as bigint) end as gpu_index,
            {_label("GPU_I_ID")} as gpu_instance,
            coalesce({_label("hpc_job")}, {exported}) as part_id,
            {exported} is not null as is_exported,
            case when labels['pod'] not like '%dcgm-exporter%' then {plain} end as plain_pod
        from dcgm_series
    """


def _refuse_other_metrics(file: ExposedFile) -> None:
    if file.count and file.count == file.unasked:
        raise ApportionError(
            f"{file.delivery.path}: none of its {file.count} samples is a metric of dcgm-exporter that is read",
            "docs/sources-dcgm.md lists them; correct the exporter's counters, the export, or the path of the source",
        )


def _points() -> str:
    """One row per file, GPU, named part and instant, with all fields; blanks are no data."""
    blank = f"case when metric = 'energy_counter_mj' then {COUNTER_BLANK} else {GAUGE_BLANK} end"
    fields = ", ".join(f"max(value) filter (metric = '{name}') as {name}" for name in NAMES)
    twice = " or ".join(
        f"min(value) filter (metric = '{name}') < max(value) filter (metric = '{name}')" for name in NAMES
    )
    return f"""
        with exported as (
            select distinct file from dcgm_samples join dcgm_series using (series) where is_exported
        ),

        told as (
            select s.file, s.line, {GPU}, s.taken_at as sampled_at, metric,
                case when e.file is null then coalesce(part_id, plain_pod) else part_id end as part_id,
                case when not isnan(value) and value < {blank} then value end as value
            from dcgm_samples as s
            join dcgm_series using (series)
            left join exported as e on e.file = s.file
        )

        select file, min(line) as line, {GPU}, part_id, sampled_at, {fields}, coalesce({twice}, false) as is_told_twice
        from told
        group by file, {GPU}, part_id, sampled_at
    """


def _usual(source: DcgmSource) -> str:
    """SQL for the usual distance between two samples of a GPU on each node; null if no GPU has two.

    Exporters may be scraped at different rates. A node with few samples goes by those of all: of two samples that are
    hours apart, the distance is a gap and not the rate.
    """
    if source.interval_seconds:
        return f"select distinct node_name, cast({source.interval_seconds * 1000} as bigint) as ms from dcgm_points"
    return f"""
        with distances as (
            select node_name,
                date_diff('millisecond', lag(sampled_at) over (partition by {GPU} order by sampled_at), sampled_at)
                    as ms
            from (select distinct {GPU}, sampled_at from dcgm_points)
        )

        select node_name, cast(round(case
                when count(ms) >= {ENOUGH_DISTANCES} then median(ms)
                else (select median(ms) from distances)
            end) as bigint) as ms
        from distances group by node_name
    """


def _rows(source: DcgmSource) -> str:
    """Samples with the time that they stand for. Pods that share a GPU, or files that both tell a sample, share it;
    what cannot be divided is the first one's."""
    fields = ", ".join(f"p.{name}" for name in NAMES)
    usual_ms = f"coalesce(u.ms, {DEFAULT_INTERVAL_MS})"
    return f"""
        with instants as (
            select {GPU}, sampled_at, count(*) as tellers, min({{'file': file, 'line': line}}) as first_told,
                lead(sampled_at) over (partition by {GPU} order by sampled_at) as next_at
            from dcgm_points
            group by {GPU}, sampled_at
        )

        select p.file, p.line, {literal(source.cluster)} as cluster_id, p.node_name, p.gpu_index, p.gpu_instance,
            p.part_id, p.sampled_at,
            case
                when i.next_at is null then {usual_ms}
                else least(date_diff('millisecond', p.sampled_at, i.next_at), 2 * {usual_ms})
            end as shared_ms,
            shared_ms // i.tellers
                + case when i.first_told = {{'file': p.file, 'line': p.line}} then shared_ms % i.tellers else 0 end
            as interval_ms,
            {fields},
            cast(null as varchar) as bad_reason,
            cast(null as varchar) as skip_reason
        from dcgm_points as p
        join instants as i
            on i.node_name = p.node_name and i.gpu_index = p.gpu_index and i.sampled_at = p.sampled_at
            and i.gpu_instance is not distinct from p.gpu_instance
        join dcgm_usual as u on u.node_name = p.node_name
    """


def _found(con: DuckDBPyConnection, files: Sequence[ExposedFile]) -> list[Found]:
    ((usual_ms,),) = con.execute("select max(ms) from dcgm_usual").fetchall()
    twice = dict(con.execute("select file, count(*) from dcgm_points where is_told_twice group by file").fetchall())
    found = []
    for file in files:
        doubts = list(file.doubts)
        if usual_ms is None:
            doubts.append("one sample per GPU, taken to stand for a minute: set interval_seconds")
        if file.file in twice:
            doubts.append(f"{twice[file.file]} samples have several values at one instant; the greatest is taken")
        found.append(Found(f"dcgm-exporter, {file.variant}", doubts=tuple(doubts)))
    return found
