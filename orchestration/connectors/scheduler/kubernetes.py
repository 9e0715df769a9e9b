"""Kubernetes pods: one JSON object per line, as exported from kube-state-metrics and the metrics server.

Pods of one controller are one job; a bare pod is a job of its own and needs its uid, because its name comes
back.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.scheduler.notation import parse_requests
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
from orchestration.connectors.text import load_lines
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
        _, counts = load_lines(con, "pod_lines", deliveries, header=False)
        con.execute(f"create or replace temp table pod_fields as {_fields()}")
        con.execute("drop table pod_lines")
        map_distinct(
            con,
            "pod_requests",
            "select distinct requests from pod_fields where requests is not null",
            [("gpu_units", pa.int64()), ("cpu_millicores", pa.int64()), ("memory_mib", pa.int64())],
            parse_requests,
        )
        con.execute(f"create or replace temp table pod_rows as {_select(source)}")
        return Reading("from pod_rows", counts)

    return [Feed("jobs", source.path, read)]


def _fields() -> str:
    paths = quoted(TEXTS.values())
    columns = ", ".join(f"nullif(texts[{place}], '') as {name}" for place, name in enumerate(TEXTS, start=1))
    return f"""
        select file, line, whole is not null as is_object, {columns},
            case when json_type(whole, '$.requests') = 'OBJECT' and json_keys(whole, '$.requests') <> []
                then cast(json_extract(whole, '$.requests') as varchar) end as requests,
            case when json_type(whole, '$.labels') = 'OBJECT' and json_keys(whole, '$.labels') <> []
                then cast(json_extract(whole, '$.labels') as varchar) end as labels
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
    skip = first_reason(("is_object and started is null and ended is null", literal("not started")))
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
                else upper(phase)
            end as state,
            cast(null as varchar) as exit_code,
            {utc("created")} as submit_at,
            {utc("started")} as start_at,
            {utc("ended")} as end_at,
            case when end_at is null then greatest(d.delivered_at, start_at) end as as_of_at,
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
