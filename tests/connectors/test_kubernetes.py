"""Pods out of kube-state-metrics: their lives, what they hold, and every sample accounted for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from orchestration.connectors.scheduler.kubernetes_notation import parse_requests
from orchestration.errors import ApportionError
from tests.connectors.prometheus_files import Sample, any_dialect, query_range, sample, text

MONDAY = 1767571200  # 2026-01-05T00:00:00Z
DAY, STEP = 86_400, 600
GPU = 25_200


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def source(workspace, **settings):
    return workspace.source(
        **{"area": "scheduler", "kind": "kubernetes", "cluster": "k", "path": "{data}/inbox/*", **settings}
    )


def pod_series(
    seconds: int, *, phase: str = "Running", node: str = "n1", kind: str = "Job", owner: str = "train", **ids: str
) -> list[Sample]:
    """What says that a pod is there; more series are added by the tests that need them."""
    ms = seconds * 1000
    ids = {"namespace": "ml", "pod": "w-0", "uid": "u-0"} | ids
    return [
        sample("kube_pod_info", ms, 1, **ids, node=node, created_by_kind=kind, created_by_name=owner),
        *(
            sample("kube_pod_status_phase", ms, int(phase == name), **ids, phase=name)
            for name in ("Pending", "Running", "Succeeded", "Failed", "Unknown")
        ),
    ]


@dataclass(frozen=True)
class Pod:
    name: str
    bound: int
    """When it got its node; it is listed as pending for half an hour before."""
    stop: int
    fate: str
    gone: int
    """When it is no longer listed."""
    cores: int
    gpus: int

    @property
    def finished(self) -> bool:
        return self.fate != "deleted"

    def phase(self, now: int) -> str:
        if now < self.bound:
            return "Pending"
        if now < self.stop or not self.finished:
            return "Running"
        return "Succeeded" if self.fate == "completed" else "Failed"

    def series(self, now: int) -> Iterator[Sample]:
        ids = {"namespace": "ml", "pod": self.name, "uid": f"u-{self.name}"}
        ms, is_bound = now * 1000, now >= self.bound
        yield from pod_series(now, **ids, phase=self.phase(now), node="n1" if is_bound else "", owner=f"j-{self.name}")
        yield sample("kube_pod_created", ms, self.bound - 1800, **ids)
        if is_bound:
            yield sample("kube_pod_start_time", ms, self.bound, **ids)
        if self.fate == "completed" and now >= self.stop:
            yield sample("kube_pod_completion_time", ms, self.stop, **ids)
        if self.fate == "evicted" and now >= self.stop:
            yield sample("kube_pod_status_reason", ms, 1, **ids, reason="Evicted")
        for name, unit, amount in (("cpu", "core", self.cores), ("nvidia_com_gpu", "integer", self.gpus)):
            more = {"container": "c", "resource": name, "unit": unit}
            yield sample("kube_pod_container_resource_requests", ms, amount, **ids, **more)


def random_pods(rng: random.Random, count: int) -> list[Pod]:
    pods = []
    for number in range(count):
        bound = MONDAY + rng.randrange(-DAY // 2, 3 * DAY)
        stop = bound + rng.choice([rng.randrange(1, 3 * STEP), rng.randrange(DAY), rng.randrange(4 * DAY)])
        fate = rng.choice(["completed", "completed", "evicted", "deleted"])
        gone = stop + (rng.randrange(DAY) if fate != "deleted" else 0)
        pods.append(Pod(f"p{number}", bound, stop, fate, gone, rng.randrange(1, 9), rng.randrange(3)))
    return pods


def expected_life(pod: Pod, days: list[list[int]]) -> tuple | None:
    """Start, end, as-of and state by the newest file that knows the pod, worked out scrape by scrape."""
    known = None
    for scrapes in days:
        seen = [now for now in scrapes if pod.bound - 1800 <= now < pod.gone]
        running = [now for now in seen if pod.bound <= now and not (pod.finished and now >= pod.stop)]
        over = [now for now in seen if pod.finished and now >= pod.stop]
        if not [*running, *over]:
            continue
        if over:
            if pod.fate == "evicted" and seen[0] == over[0] == scrapes[0]:
                continue
            end = pod.stop if pod.fate == "completed" else over[0]
            known = (pod.bound, end, None, "COMPLETED" if pod.fate == "completed" else "PREEMPTED")
        elif running[-1] == scrapes[-1]:
            known = (pod.bound, None, scrapes[-1], "RUNNING")
        else:
            known = (pod.bound, running[-1] + STEP, None, "CANCELLED")
    return known


def test_pods_live_as_they_did_whatever_the_form_of_the_files(workspace):
    rng = random.Random(5)
    pods = random_pods(rng, 60)
    days = [list(range(MONDAY + n * DAY, MONDAY + (n + 1) * DAY, STEP)) for n in range(3)]
    for number, scrapes in enumerate(days):
        samples = [s for now in scrapes for p in pods if p.bound - 1800 <= now < p.gone for s in p.series(now)]
        rng.shuffle(samples)
        name = f"ksm_2026-01-0{5 + number}_2026010{6 + number}T001000Z.bin{rng.choice(['', '.gz'])}"
        workspace.deliver(name, any_dialect(rng)(samples))
    kubernetes = source(workspace)
    workspace.land(kubernetes, "2026-01-05", "2026-01-08")
    found = {
        row[0]: row[1:]
        for row in workspace.query(
            "select distinct part_id, start_at, end_at, as_of_at, state, gpu_units, cpu_millicores, node_names,"
            " submit_at from {jobs}"
        )
    }
    expected = {}
    for pod in pods:
        life = expected_life(pod, days)
        if life and (life[1] or life[2]) > MONDAY:
            start, end, as_of, state = life
            more = (pod.gpus * GPU, pod.cores * 1000, "n1", at(pod.bound - 1800))
            expected[f"ml/{pod.name}"] = (at(start), at(end), at(as_of), state, *more)
    assert found == expected
    assert len(expected) > 40
    assert {row[3] for row in found.values()} == {"COMPLETED", "PREEMPTED", "CANCELLED", "RUNNING"}
    together = workspace.snapshot()
    for day in (7, 5, 6):
        workspace.land(kubernetes, f"2026-01-0{day}", f"2026-01-0{day + 1}")
    assert workspace.snapshot() == together


def test_what_a_pod_holds_and_used(workspace):
    ids = {"namespace": "ml", "pod": "w-0", "uid": "u-0"}
    samples: list[Sample] = []

    def add(name: str, value: float, **labels: str) -> None:
        samples.append(sample(name, ms, value, **labels))

    start = MONDAY + 3600.5
    for minute in range(60, 181):
        ms = (MONDAY + minute * 60) * 1000
        samples += pod_series(MONDAY + minute * 60, owner="<none>", kind="<none>")
        add("kube_pod_start_time", start, **ids)
        for container, cores, gib in (("a", 1.5, 2), ("b", 0.25, 1)):
            add("kube_pod_container_resource_requests", cores, **ids, container=container, resource="cpu", unit="core")
            add("kube_pod_container_resource_limits", gib * 2**30, **ids, container=container, resource="memory")
        add("kube_pod_container_resource_limits", 16, **ids, container="a", resource="cpu", unit="core")
        add("kube_pod_init_container_resource_requests", 4, **ids, container="i", resource="cpu", unit="core")
        add("kube_pod_init_container_resource_requests", 2**30, **ids, container="i", resource="memory", unit="byte")
        add("kube_pod_container_resource_requests", 2, **ids, container="a", resource="nvidia_com_gpu", unit="integer")
        add("kube_pod_labels", 1, **ids, label_user="ann", label_team="x", label_checkpoint_minutes="30")
        add("kube_namespace_labels", 1, namespace="ml", label_team="nlp")
        add("kube_node_labels", 1, node="n1", label_nvidia_com_gpu_replicas="4", label_agentpool="a100")
        # The counter of container a begins again at minute 120; the whole pod is not counted beside its containers.
        counted = (minute - 60) * 30 if minute < 120 else (minute - 120) * 12
        add("container_cpu_usage_seconds_total", counted, namespace="ml", pod="w-0", container="a", cpu="total")
        add("container_cpu_usage_seconds_total", 100, namespace="ml", pod="w-0", container="b", cpu="total")
        add("container_cpu_usage_seconds_total", 1e6, namespace="ml", pod="w-0", container="")
        add("container_cpu_usage_seconds_total", 1e9, id="/")
        add("container_memory_working_set_bytes", minute * 2**20, namespace="ml", pod="w-0", container="a")
        add("container_memory_working_set_bytes", 2**30, namespace="ml", pod="w-0", container="b")
        add("container_network_transmit_bytes_total", 500 + minute, namespace="ml", pod="w-0", interface="eth0")
        add("container_network_transmit_bytes_total", 9e9, namespace="ml", pod="w-0", interface="lo")
    workspace.deliver("ksm_2026-01-05_20260106T001000Z.json", query_range(samples))
    workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    row = workspace.query(
        "select job_key, job_id, user_name, partition, labels, checkpoint_interval_ms, gpu_units, cpu_millicores,"
        " memory_mib, measured_cpu_millicores, measured_memory_mib, bytes_out, start_at, as_of_at from {jobs}"
    )[0]
    # Samples count from the first after the start, at minute 61.
    seconds = 59 * 30 + 60 * 12 + 100
    memory = Fraction(sum(range(61, 181)), 120) + 1024
    assert row == (
        *("k:ml/Pod/w-0/u-0", "ml/w-0", "ann", "a100"),
        '{"user":"ann","team":"x","checkpoint_minutes":"30","namespace/team":"nlp"}',
        *(1_800_000, GPU // 2, 4000, 3072),
        *(round(seconds / (MONDAY + 180 * 60 - start) * 1000), int(memory + Fraction(1, 2)), 680),
        *(at(start), at(MONDAY + 180 * 60)),
    )


def test_old_series_have_no_uid_and_prometheus_may_rename_labels(workspace):
    """A pod of a StatefulSet comes back under its name; what carries no uid belongs to who was there at the time."""
    samples = []
    for minute in range(0, 120):
        now = MONDAY + minute * 60
        if 50 <= minute < 55:
            continue
        uid, start, cores = ("u-1", MONDAY - 60, 2) if minute < 50 else ("u-2", MONDAY + 54 * 60, 2)
        names = {"exported_namespace": "ml", "exported_pod": "db-0", "namespace": "monitoring", "pod": "ksm-0"}
        of_set = {"created_by_kind": "StatefulSet", "created_by_name": "db"}
        samples += [
            sample("kube_pod_info", now * 1000, 1, **names, uid=uid, node="n1", **of_set),
            sample("kube_pod_start_time", now * 1000, start, **names),
            sample("kube_pod_status_phase", now * 1000, 1, **names, phase="Running"),
            sample("kube_pod_container_resource_requests_cpu_cores", now * 1000, cores, **names, container="c"),
            sample("kube_pod_container_resource_requests_memory_bytes", now * 1000, 2**30, **names, container="c"),
        ]
    workspace.deliver("ksm_2026-01-05_20260106T001000Z.prom", text(samples))
    workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    assert workspace.query(
        "select job_key, part_id, start_at, end_at, state, cpu_millicores, memory_mib from {jobs} order by start_at"
    ) == [
        ("k:ml/StatefulSet/db", "ml/db-0", at(MONDAY - 60), at(MONDAY + 50 * 60), "CANCELLED", 2000, 1024),
        ("k:ml/StatefulSet/db", "ml/db-0", at(MONDAY + 54 * 60), None, "RUNNING", 2000, 1024),
    ]


def test_series_and_records_of_pods_stand_beside_each_other(workspace):
    record = {"namespace": "ml", "pod": "r-0", "uid": "r", "node": "n2", "start": "2026-01-05T01:00:00Z", "end": None}
    record |= {"phase": "Running", "labels": {}, "requests": {"nvidia.com/gpu": "1"}, "usage": {}}
    workspace.deliver("a_20260106T000000Z.txt", json.dumps(record))
    start = sample("kube_pod_start_time", MONDAY * 1000, MONDAY - 5, namespace="ml", pod="w-0", uid="u-0")
    odd = sample("kube_pod_container_resource_requests", MONDAY * 1000, 4, namespace="ml", pod="w-0", uid="u-0",
                 container="c", resource="google_com_tpu", unit="integer")  # fmt: skip
    nameless = sample("kube_pod_info", MONDAY * 1000, 1, node="n1")
    workspace.deliver("b_20260106T000000Z.txt", text([*pod_series(MONDAY), start, odd, nameless]))
    kubernetes = source(workspace, max_bad_share=0.5, gpu_replicas=2)
    report = workspace.land(kubernetes, "2026-01-04", "2026-01-06")
    assert workspace.query("select distinct part_id, gpu_units, as_of_at from {jobs} order by 1") == [
        ("ml/r-0", GPU // 2, at(MONDAY + DAY)),
        ("ml/w-0", 0, at(MONDAY)),
    ]
    assert (report.quarantined, report.skipped) == (1, 7)
    assert workspace.quarantined() == [(17, "labels namespace and pod are missing")]
    assert set(report.variants) == {
        "pod records, one JSON object a line",
        "kube-state-metrics, Prometheus text",
    }


def test_a_file_without_the_series_that_pods_need_is_refused(workspace):
    workspace.deliver("ksm_2026-01-05.prom", text([s for s in pod_series(MONDAY) if s.name == "kube_pod_info"]))
    with pytest.raises(ApportionError, match=r"ksm_2026-01-05.prom: no sample of kube_pod_status_phase"):
        workspace.land(source(workspace), "2026-01-05", "2026-01-06")


@pytest.mark.parametrize(
    ("containers", "gpus"),
    [
        ([{"nvidia_com_gpu": 2}], 2),
        ([{"nvidia.com/gpu": "2"}, {"amd.com/gpu": "1"}], 3),
        ([{"nvidia_com_gpu": 2, "nvidia_com_gpucores": 30, "nvidia_com_gpumem": 3000}], Fraction(6, 10)),
        ([{"nvidia_com_gpu": 1, "nvidia_com_gpucores": 30}, {"nvidia_com_gpu": 1}], Fraction(13, 10)),
        ([{"nvidia_com_gpu": 2, "nvidia_com_gpumem_percentage": 25}], Fraction(1, 2)),
        ([{"nvidia_com_gpu": 1, "nvidia_com_gpumem": 3000}], 1),
        ([{"volcano_sh_vgpu_number": 2, "volcano_sh_vgpu_cores": 50}], 1),
        ([{"koordinator_sh_gpu_core": 50, "koordinator_sh_gpu_memory_ratio": 60}], Fraction(1, 2)),
        ([{"koordinator.sh/gpu": "200"}], 2),
        ([{"aliyun_com_gpu_core_percentage": 25, "aliyun_com_gpu_mem": 5.5}], Fraction(1, 4)),
        ([{"nvidia_com_mig_1g_10gb": 2}], Fraction(2, 7)),
        ([{"nvidia.com/mig-3g.40gb": 1}], Fraction(3, 7)),
        ([{"nvidia.com/mig-1g.6gb": 1}], Fraction(1, 4)),
        ([{"gpu_intel_com_i915": 1}, {"habana_ai_gaudi": 2}], 3),
        ([{"cpu": 1}], 0),
    ],
)
def test_shares_of_gpus(containers, gpus):
    units, _, _, doubts = parse_requests(json.dumps({"containers": containers}))
    assert (units, doubts) == (int(gpus * GPU + Fraction(1, 2)), [])


def test_shared_gpus_and_what_is_in_doubt():
    def gpus(replicas: int | None, **asked: object) -> tuple[Fraction, list[str]]:
        units, _, _, doubts = parse_requests(json.dumps(asked), replicas)
        return Fraction(units, GPU), doubts

    one = [{"nvidia_com_gpu": 1}]
    assert gpus(4, containers=one) == (Fraction(1, 4), [])
    assert gpus(4, containers=one, gpu_replicas="2") == (Fraction(1, 2), [])
    assert gpus(4, containers=one, gpu_replicas="1") == (1, [])
    assert gpus(4, containers=[{"nvidia.com/gpu.shared": 2}]) == (Fraction(1, 2), [])
    assert gpus(2, containers=[{"nvidia_com_mig_1g_10gb_shared": 1}])[0] == Fraction(1, 14)
    assert gpus(4, containers=[{"nvidia_com_mig_1g_10gb": 1}])[0] == Fraction(1, 7)
    assert gpus(None, containers=[], gpu_fraction="0.5", gpu_fraction_num_devices="2") == (1, [])
    assert gpus(None, containers=one, init_containers=[{"nvidia_com_gpu": 3}, {"nvidia_com_gpu": 2}])[0] == 3
    whole, doubts = gpus(None, containers=[{"nvidia_com_gpu_shared": 1, "google_com_tpu": 4}])
    assert whole == 1
    assert ["google_com_tpu" in doubts[1], "count as whole ones" in doubts[0]] == [True, True]
    with pytest.raises(ValueError, match=r"gpu.replicas of the node"):
        gpus(None, containers=one, gpu_replicas="many")
