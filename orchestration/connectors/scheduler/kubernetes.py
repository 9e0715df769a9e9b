"""Kubernetes pods: series of kube-state-metrics, or records that were made of them, one JSON object per line.

Both become the same table of pods, which one set of rules judges. Pods of one controller are one job; a bare pod is a
job of its own and needs its uid, because its name comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading
from orchestration.connectors.exposition import is_exposition
from orchestration.connectors.scheduler.kubernetes_lives import DELETED
from orchestration.connectors.scheduler.kubernetes_metrics import load_pods
from orchestration.connectors.scheduler.kubernetes_notation import parse_requests
from orchestration.connectors.sql import (
    backwards,
    first_reason,
    literal,
    map_distinct,
    minutes_ms,
    missing,
    quoted,
    thousandths,
    unreadable,
    utc,
)
from orchestration.connectors.tables import PACKED
from orchestration.connectors.text import load_lines, packing
from orchestration.settings import KubernetesSource

TEXTS = {
    "namespace": "$.namespace",
    "pod": "$.pod",
    "uid": "$.uid",
    "node": "$.node",
    "kind": "$.created_by_kind",
    "owner": "$.created_by_name",
    "created": "$.created",
    "started": "$.start",
    "ended": "$.end",
    "phase": "$.phase",
    "reason": "$.reason",
    "cpu_cores": "$.usage.cpu_cores",
    "memory_bytes": "$.usage.memory_bytes",
    "sent_bytes": "$.usage.network_transmit_bytes",
    "user_label": '$.labels."apportion.io/user"',
    "plain_user_label": "$.labels.user",
    "node_group": '$.labels."node-group"',
    "checkpoint": "$.labels.checkpoint_minutes",
}
PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


def feeds(source: KubernetesSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("jobs", source.path, read)]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: KubernetesSource) -> Reading:
    texts = ", ".join(f"{name} varchar" for name in TEXTS)
    con.execute(
        f"create or replace temp table pod_fields (file bigint, line bigint, is_object boolean, {texts},"
        " requests varchar, labels varchar, as_of timestamptz, skip varchar)"
    )
    exposed = {file: delivery for file, delivery in enumerate(deliveries) if is_exposition(delivery)}
    records = {file: delivery for file, delivery in enumerate(deliveries) if file not in exposed}
    counts = _load_records(con, records)
    variants = {file: f"{PACKED[packing(d.path)]}pod records, one JSON object a line" for file, d in records.items()}
    doubts: dict[int, list[str]] = {file: [] for file in records}
    pods = load_pods(con, exposed)
    for file in pods.files:
        counts[file.file] = file.count
        variants[file.file] = f"kube-state-metrics, {file.variant}"
        doubts[file.file] = [*file.doubts, *pods.doubts[file.file]]
    map_distinct(
        con,
        "pod_requests",
        "select distinct requests from pod_fields where requests is not null",
        [
            *((name, pa.int64()) for name in ("gpu_units", "cpu_millicores", "memory_mib")),
            ("doubts", pa.list_(pa.string())),
        ],
        lambda text: parse_requests(text, source.gpu_replicas),
    )
    con.execute(f"create or replace temp table pod_rows as {_select(source)}")
    for file, doubt in con.execute(
        "select distinct file, unnest(r.doubts) as doubt from pod_fields as f join pod_requests as r"
        " on r.text = f.requests order by all"
    ).fetchall():
        doubts[file].append(doubt)
    return Reading(
        "from pod_rows",
        [counts[file] for file in range(len(deliveries))],
        pods.rejects,
        pods.folded,
        found=[Found(variants[file], doubts=tuple(doubts[file])) for file in range(len(deliveries))],
    )


def _load_records(con: DuckDBPyConnection, records: Mapping[int, Delivery]) -> dict[int, int]:
    """Pod records into `pod_fields`; returns how many each file has."""
    if not records:
        return {}
    _, counts = load_lines(con, "pod_lines", list(records.values()), header=False)
    con.execute(f"insert into pod_fields {_fields(list(records))}")
    con.execute("drop table pod_lines")
    return dict(zip(records, counts, strict=True))


def _fields(files: Sequence[int]) -> str:
    paths = quoted(TEXTS.values())
    columns = ", ".join(f"nullif(texts[{place}], '') as {name}" for place, name in enumerate(TEXTS, start=1))
    return f"""
        select {list(files)}[file + 1] as file, line, whole is not null as is_object, {columns},
            case when json_type(whole, '$.requests') = 'OBJECT' and json_keys(whole, '$.requests') <> []
                then cast(json_extract(whole, '$.requests') as varchar) end as requests,
            case when json_type(whole, '$.labels') = 'OBJECT' and json_keys(whole, '$.labels') <> []
                then cast(json_extract(whole, '$.labels') as varchar) end as labels,
            null as as_of, null as skip
        from (
            select file, line, whole, json_extract_string(whole, [{paths}]) as texts
            from (
                select file, line,
                    case when json_valid(raw) and json_type(raw) = 'OBJECT' then raw end as whole
                from pod_lines
            )
        )
    """


def _bytes(column: str) -> str:
    return f"cast(round(try_cast({column} as decimal(28, 3))) as bigint)"


def _select(source: KubernetesSource) -> str:
    cluster = literal(source.cluster)
    skip = first_reason(
        ("f.skip is not null", "f.skip"),
        ("is_object and started is null and ended is null", literal("not started")),
    )
    reason = first_reason(
        ("not is_object", literal("not a JSON object: truncated or broken")),
        ("skip_reason is not null", "null"),
        missing("f.namespace", "namespace"),
        missing("f.pod", "pod"),
        missing("started", "start"),
        unreadable("started", "start_at", "start", "a time"),
        unreadable("ended", "end_at", "end", "a time"),
        unreadable("created", "submit_at", "created", "a time"),
        missing("phase", "phase"),
        (f"phase not in ({quoted(PHASES)})", "'phase is unknown: ' || phase"),
        ("phase in ('Succeeded', 'Failed') and ended is null", literal("finished, but without an end")),
        backwards("start_at", "end_at"),
        unreadable("cpu_cores", "measured_cpu_millicores", "usage.cpu_cores", "a number"),
        unreadable("memory_bytes", "measured_memory_mib", "usage.memory_bytes", "a number"),
        unreadable("sent_bytes", "bytes_out", "usage.network_transmit_bytes", "a number"),
        ("least(measured_cpu_millicores, measured_memory_mib, bytes_out) < 0", literal("usage is negative")),
        ("r.reason is not null", "r.reason"),
    )
    return f"""
        select
            f.file,
            f.line,
            {cluster} as cluster_id,
            'kubernetes' as scheduler,
            {cluster} || ':' || f.namespace || '/' || case
                when owner is null then 'Pod/' || pod || coalesce('/' || uid, '')
                else coalesce(kind, 'Pod') || '/' || owner
            end as job_key,
            f.namespace || '/' || coalesce(owner, pod) as job_id,
            f.namespace || '/' || pod as part_id,
            cast(null as varchar) as array_job_id,
            coalesce(user_label, plain_user_label) as user_name,
            cast(null as varchar) as account,
            f.namespace as namespace,
            node_group as partition,
            cast(null as varchar) as qos,
            coalesce(owner, pod) as job_name,
            f.labels as labels,
            case
                when phase = 'Succeeded' then 'COMPLETED'
                when phase = 'Failed' and f.reason in ('Evicted', 'Preempted', 'Preempting') then 'PREEMPTED'
                when phase = 'Failed' and f.reason = 'NodeLost' then 'NODE_FAIL'
                when f.reason = {literal(DELETED)} then 'CANCELLED'
                else upper(phase)
            end as state,
            cast(null as varchar) as exit_code,
            {utc("created")} as submit_at,
            {utc("started")} as start_at,
            {utc("ended")} as end_at,
            case when end_at is null then greatest(coalesce(f.as_of, d.delivered_at), start_at) end as as_of_at,
            cast(0 as bigint) as suspended_ms,
            cast(null as bigint) as time_limit_ms,
            {minutes_ms("checkpoint")} as checkpoint_interval_ms,
            node as node_names,
            r.gpu_units,
            r.cpu_millicores,
            r.memory_mib,
            {thousandths("cpu_cores")} as measured_cpu_millicores,
            cast(round(try_cast(memory_bytes as decimal(28, 3)) / 1048576) as bigint) as measured_memory_mib,
            {_bytes("sent_bytes")} as bytes_out,
            {skip} as skip_reason,
            {reason} as bad_reason
        from pod_fields as f
        join deliveries as d using (file)
        left join pod_requests as r on r.text = f.requests
    """
