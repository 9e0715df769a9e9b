"""Series of kube-state-metrics (and cAdvisor) to pods: what each asked for, where it ran, from when to when.

A file is what somebody knew at its last scrape. The same pod is in the files of several days, and each tells it as it
was known then; it must start at the same instant in all of them, so a start that Kubernetes itself recorded is always
preferred to the first sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reject
from orchestration.connectors.exposition import ExposedFile, load_samples, reject_series
from orchestration.connectors.scheduler.kubernetes_lives import LIVES, POD_FIELDS, own
from orchestration.connectors.scheduler.kubernetes_usage import USAGE, load_usage
from orchestration.connectors.sql import literal, quoted
from orchestration.errors import ApportionError

ABOUT_PODS = {
    "kube_pod_info": "info",
    "kube_pod_owner": "owner",
    "kube_pod_created": "created",
    "kube_pod_status_scheduled_time": "scheduled",
    "kube_pod_start_time": "started",
    "kube_pod_completion_time": "completed",
    "kube_pod_status_phase": "phase",
    "kube_pod_status_reason": "reason",
    "kube_pod_labels": "labels",
    "kube_pod_annotations": "annotations",
    "kube_pod_container_resource_requests": "requests",
    "kube_pod_container_resource_limits": "limits",
    "kube_pod_init_container_resource_requests": "init_requests",
    "kube_pod_init_container_resource_limits": "init_limits",
    # Before version 2 each resource was a metric of its own.
    "kube_pod_container_resource_requests_cpu_cores": "requests/cpu",
    "kube_pod_container_resource_requests_memory_bytes": "requests/memory",
    "kube_pod_container_resource_limits_cpu_cores": "limits/cpu",
    "kube_pod_container_resource_limits_memory_bytes": "limits/memory",
}
ABOUT_PLACES = {"kube_namespace_labels": "namespace_labels", "kube_node_labels": "node_labels"}
REQUIRED = {"info": "kube_pod_info", "phase": "kube_pod_status_phase"}


@dataclass(frozen=True)
class Pods:
    files: list[ExposedFile]
    rejects: list[Reject]
    folded: dict[int, int]
    doubts: dict[int, list[str]]


def load_pods(con: DuckDBPyConnection, deliveries: Mapping[int, Delivery]) -> Pods:
    """All pods of some files into the temp table `pod_fields`, one row per file and pod."""
    if not deliveries:
        return Pods([], [], {}, {})
    exposed = load_samples(con, "ksm", deliveries, {**ABOUT_PODS, **ABOUT_PLACES, **USAGE})
    # cAdvisor also counts what is no pod, such as the whole node; those series belong to nobody here.
    nameless = f"metric in ({quoted(ABOUT_PODS.values())}) and ({own('pod')} is null or {own('namespace')} is null)"
    reason = f"case when {nameless} then {literal('labels namespace and pod are missing')} end"
    reject_series(con, "ksm", reason, exposed.rejects)
    con.execute(f"create or replace temp table ksm_facts as {_facts()}")
    con.execute(f"create or replace temp table ksm_clocks as {_clocks()}")
    _require(con, deliveries)
    con.execute(f"create or replace temp table ksm_pods as {_pods()}")
    con.execute(f"create or replace temp table ksm_known as {_known()}")
    con.execute(f"create or replace temp table ksm_lives as {LIVES}")
    load_usage(con)
    con.execute(f"insert into pod_fields by name {POD_FIELDS}")
    folded = dict(
        con.execute(
            "select s.file, count(*) - any_value(p.pods) from ksm_samples as s"
            " join (select file, count(*) as pods from ksm_pods group by file) as p using (file) group by s.file"
        ).fetchall()
    )
    for file in exposed.files:
        folded[file.file] = folded.get(file.file, 0) + file.unasked
    return Pods(exposed.files, exposed.rejects, folded, _doubts(con))


def _facts() -> str:
    """Each value of a series with the time from its first to its last sample: all that the pods' lives depend on."""
    return f"""
        with values_seen as (
            select s.file, s.series, s.value, min(s.line) as line,
                min(s.taken_at) as first_at, max(s.taken_at) as last_at
            from ksm_samples as s join ksm_series as d using (series)
            where d.metric not in ({quoted(USAGE.values())}) and not isnan(s.value)
            group by s.file, s.series, s.value
        )

        select v.*, d.metric, d.labels, {own("namespace")} as namespace, {own("pod")} as pod,
            nullif(labels['uid'], '') as uid
        from values_seen as v join ksm_series as d using (series)
    """


def _clocks() -> str:
    """First and last scrape of each file, the usual milliseconds between two, and what it tells at all."""
    return """
        with scrapes as (
            select s.file, s.taken_at,
                lag(s.taken_at) over (partition by s.file, s.series order by s.taken_at) as before
            from ksm_samples as s join ksm_series as d using (series)
            where d.metric = 'info'
        ),

        distances as (
            select file, cast(round(median(date_diff('millisecond', before, taken_at))) as bigint) as usual_ms
            from scrapes where taken_at > before group by file
        )

        select f.file, min(f.first_at) as begins_at, max(f.last_at) as as_of_at, any_value(d.usual_ms) as usual_ms,
            bool_or(f.metric in ('scheduled', 'started')) as has_starts,
            bool_or(starts_with(f.metric, 'requests')) as has_requests,
            list(distinct f.metric) as metrics
        from ksm_facts as f
        left join distances as d using (file)
        group by f.file
    """


def _require(con: DuckDBPyConnection, deliveries: Mapping[int, Delivery]) -> None:
    told = dict(con.execute("select file, metrics from ksm_clocks").fetchall())
    for file, delivery in deliveries.items():
        absent = [name for metric, name in REQUIRED.items() if metric not in told.get(file, [])]
        if absent:
            raise ApportionError(
                f"{delivery.path}: no sample of {' and '.join(absent)}",
                "export all series of docs/sources-kubernetes.md into one file",
            )


def _pods() -> str:
    """Who was there. A name comes back with another uid; series without uid are of all pods of that name."""
    return """
        with told as (
            select file, namespace, pod, uid, min(first_at) as first_at, max(last_at) as last_at, min(line) as line
            from ksm_facts where pod is not null group by file, namespace, pod, uid
        )

        select row_number() over (order by file, namespace, pod, uid) as pod_number, t.*
        from told as t
        where uid is not null or not exists (
            from told as o
            where o.uid is not null and o.file = t.file and o.namespace = t.namespace and o.pod = t.pod
        )
    """


def _known() -> str:
    """What is told of each pod, cut to the time in which it was there."""
    return """
        select p.pod_number, f.metric, f.labels, f.value,
            greatest(f.first_at, p.first_at) as first_at, least(f.last_at, p.last_at) as last_at
        from ksm_facts as f
        join ksm_pods as p
            on f.file = p.file and f.namespace = p.namespace and f.pod = p.pod
            and (f.uid is not distinct from p.uid
                or (f.uid is null and f.first_at <= p.last_at and f.last_at >= p.first_at))
    """


def _doubts(con: DuckDBPyConnection) -> dict[int, list[str]]:
    found = {}
    for file, has_starts, has_requests, usual_ms in con.execute(
        "select file, has_starts, has_requests, usual_ms from ksm_clocks"
    ).fetchall():
        found[file] = [
            text
            for is_so, text in (
                (not has_starts, "no kube_pod_start_time: pods start with their first sample"),
                (not has_requests, "no kube_pod_container_resource_requests: pods hold their limits or measured use"),
                (usual_ms is None, "a single scrape: pods that were deleted since the file before are not noticed"),
            )
            if is_so
        ]
    return found
