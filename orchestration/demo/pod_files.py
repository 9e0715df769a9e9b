"""Kubernetes: the pods of each UTC day, one JSON object per line, as exported from kube-state-metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .clock import DAY, DUMP_DELAY, PERIOD_START, day_name, iso, stamp
from .files import write_text
from .habits import checkpoint_minutes
from .placement import Run, active
from .workload import Request
from .world import Part, World, mix, parts

_FAILURES = {
    "FAILED": "Error",
    "CANCELLED": "Deleted",
    "TIMEOUT": "DeadlineExceeded",
    "OUT_OF_MEMORY": "OOMKilled",
}
_LOST = ("Preempted", "Evicted", "NodeLost")


def write_pods(inbox: Path, world: World) -> dict[str, int]:
    runs = world.runs["nimbus"]
    for day in world.days:
        taken = day + DAY + DUMP_DELAY
        path = inbox / "kubernetes" / "nimbus" / f"pods_{day_name(day)}_{stamp(taken)}.jsonl.gz"
        write_text(path, _lines(active(runs, day), day, taken), taken)
    return {"pods": sum(1 for run in runs for _ in parts(run))}


def _lines(runs: list[Run], day: int, taken: int) -> Iterator[str]:
    for run in runs:
        for part in parts(run):
            yield json.dumps(_record(run, part, taken), separators=(",", ":"))
    number = (day - PERIOD_START) // DAY
    if number == 1:
        yield '{"cluster":"nimbus","namespace":"speech-asr","pod":"cut-off-0","uid":"0'
    if number == 2:  # bound to no node and never started, yet said to run
        yield (
            '{"cluster":"nimbus","namespace":"speech-asr","pod":"no-start-0","uid":"1","node":"nim-l4-01",'
            '"created_by_kind":"Job","created_by_name":"no-start","created":"2026-01-03T01:00:00Z",'
            '"start":"yesterday","end":null,"phase":"Running","reason":"","requests":{"cpu":"lots"},'
            '"labels":{},"usage":{}}'
        )


def _record(run: Run, part: Part, taken: int) -> dict[str, object]:
    request = run.request
    end = run.end if run.end is not None and run.end <= taken else None
    phase, reason = "Running", ""
    if end is not None:
        phase = "Succeeded" if run.state == "COMPLETED" else "Failed"
        lost = _LOST[mix(request.number, "lost") % 3] if run.state in ("PREEMPTED", "NODE_FAIL") else ""
        reason = lost or _FAILURES.get(run.state, "Completed")
    seconds = (taken if end is None else end) - run.start
    node = part.nodes[0].removesuffix("/mig")
    share = 5 + mix(request.number, "cpu") % 85
    return {
        "cluster": "nimbus",
        "namespace": request.namespace,
        "pod": part.label,
        "uid": f"{mix(part.label, run.start):08x}-{mix(run.start, part.label):08x}",
        "node": node,
        "created_by_kind": request.kind or None,
        "created_by_name": part.job_id if request.kind else None,
        "created": iso(run.submit),
        "start": iso(run.start),
        "end": None if end is None else iso(end),
        "phase": phase,
        "reason": reason,
        "requests": _requests(request),
        "labels": pod_labels(request),
        "usage": {
            "cpu_cores": round(request.cores * share / 100, 3),
            "memory_bytes": request.memory_mib * 1024 * 1024 // 100 * share,
            "network_transmit_bytes": seconds * (2_000 + mix(request.number, "net") % 2_500_000),
        },
    }


def _requests(request: Request) -> dict[str, str]:
    """In the spellings that Kubernetes allows. Some pods ask for a GPU and nothing else."""
    asked: dict[str, str] = {}
    if request.partition == "mig":
        asked["nvidia.com/mig-1g.10gb"] = "1"
    elif request.gpus:
        asked["nvidia.com/gpu"] = str(request.gpus)
    if request.asks:
        spelling = mix(request.number, "spelling") % 4
        asked["cpu"] = f"{request.cores * 1000}m" if spelling == 0 else str(request.cores)
        gib = request.memory_mib % 1024 == 0 and spelling != 1
        asked["memory"] = f"{request.memory_mib // 1024}Gi" if gib else f"{request.memory_mib}Mi"
    return asked


def pod_labels(request: Request) -> dict[str, str]:
    labels = {"app": request.name, "node-group": request.partition}
    if request.user and mix(request.number, "who") % 12:
        labels["apportion.io/user" if mix(request.number, "key") % 5 else "user"] = request.user
    if request.comment.startswith("team="):
        labels["team"] = request.comment.removeprefix("team=")
    if request.kind == "ReplicaSet" and request.namespace != "monitoring":
        labels["workload"] = "serving"
    if minutes := checkpoint_minutes(request):
        labels["checkpoint_minutes"] = minutes
    return labels
