"""dcgm-exporter's samples: fields side by side, blanks as no data, and the time that each sample stands for."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from orchestration.errors import ApportionError
from tests.connectors.prometheus_files import Sample, any_dialect, sample, text, untimed_text

MONDAY = 1767571200_000  # 2026-01-05T00:00:00Z, in milliseconds
FIELDS = {
    "util_percent": "DCGM_FI_DEV_GPU_UTIL",
    "sm_active": "DCGM_FI_PROF_SM_ACTIVE",
    "tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "power_watts": "DCGM_FI_DEV_POWER_USAGE",
    "energy_counter_mj": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "memory_used_mib": "DCGM_FI_DEV_FB_USED",
}
BLANKS = (9223372036854775794.0, 9223372036854775792.0, 2147483632.0, 2147483635.0, 140737488355329.0, math.nan)
COUNTER_BLANKS = (9223372036854775794.0, 140737488355328.0, 140737488355330.0, math.nan)
ROWS = (
    "select node_name, gpu_index, gpu_instance, part_id, epoch_ms(sampled_at), interval_ms, util_percent, sm_active,"
    " tensor_active, power_watts, energy_counter_mj, memory_used_mib from {gpu_samples} order by all"
)


def source(workspace, **settings):
    return workspace.source(
        **{"area": "telemetry", "kind": "dcgm", "cluster": "c", "path": "{data}/inbox/*", **settings}
    )


@dataclass
class Gpu:
    """A GPU or an instance of one, and what its samples should become: (part, fields) by instant."""

    node: str
    index: int
    instance: str | None
    told: dict[int, tuple[str | None, dict[str, float]]] = field(default_factory=dict)

    def samples(self, ms: int, rng: random.Random) -> list[Sample]:
        labels = {"gpu": str(self.index), "UUID": f"GPU-{self.node}-{self.index}", "Hostname": self.node}
        if self.instance:
            labels |= {"GPU_I_ID": self.instance, "GPU_I_PROFILE": "1g.10gb"}
        part = rng.choice([None, "77", "ml/w-0"])
        if part == "77":
            labels["hpc_job"] = part
        elif part:
            labels |= dict(zip(("namespace", "pod"), part.split("/"), strict=True))
        taken = [name for name in FIELDS if rng.random() < 0.9] or ["power_watts"]
        made, values = [], {}
        for name in taken:
            value = rng.choice([0.0, 1.0, rng.randrange(100) + 0.5])
            if name == "energy_counter_mj":
                value = float(rng.choice([2147483632, rng.randrange(10**12)]))
            if rng.random() < 0.15:
                value = rng.choice(COUNTER_BLANKS if name == "energy_counter_mj" else BLANKS)
            else:
                values[name] = value
            made.append(sample(FIELDS[name], ms, value, **labels))
        self.told[ms] = (part, values)
        return made

    def expected(self, usual: int) -> list[tuple]:
        rows = []
        instants = sorted(self.told)
        for place, ms in enumerate(instants):
            after = instants[place + 1] - ms if place + 1 < len(instants) else usual
            part, values = self.told[ms]
            where = (self.node, self.index, self.instance, part, ms, min(after, 2 * usual))
            rows.append((*where, *(values.get(name) for name in FIELDS)))
        return rows


def in_order(rows: list[tuple]) -> list[tuple]:
    return sorted(rows, key=lambda row: [(value is None, value) for value in row])


@pytest.mark.parametrize("seed", range(6))
def test_worlds_in_any_form(workspace, seed):
    """Samples a quarter of a minute apart, some missing, two gaps of hours, over midnight; in one or two files."""
    rng = random.Random(seed)
    step = 15_000
    gpus = [Gpu(f"n{n}", g, i) for n in range(2) for g, i in ((0, None), (1, None), (1, "3"))]
    samples = []
    for begin in (0, 5 * 3600_000, 24 * 3600_000 - 40 * step):
        for gpu in gpus:
            for place in range(80):
                if rng.random() < 0.9:
                    samples += gpu.samples(MONDAY + begin + place * step, rng)
    rng.shuffle(samples)
    nodes = [[s for s in samples if dict(s.labels)["Hostname"] == f"n{n}"] for n in range(2)]
    for number, part in enumerate(nodes if seed % 2 else [samples]):
        workspace.deliver(f"dcgm_{number}_2026-01-05_2026-01-07_20260107T000500Z.x", any_dialect(rng)(part))
    telemetry = source(workspace, **({"interval_seconds": 15} if seed % 3 else {}))
    report = workspace.land(telemetry, "2026-01-05", "2026-01-07")
    expected = [row for gpu in gpus for row in gpu.expected(step)]
    assert in_order(workspace.query(ROWS)) == in_order(expected)
    assert report.tables["gpu_samples"].read == len(samples)
    together = workspace.snapshot()
    for day in ("06", "05"):
        workspace.land(telemetry, f"2026-01-{day}", f"2026-01-{int(day) + 1:02}")
    assert workspace.snapshot() == together


def test_a_file_per_scrape(workspace):
    """What a cron line with curl leaves behind: times are those of the files' names, distances those between files."""
    for minute in (0, 1, 2, 3, 30, 31):
        stamp = datetime.fromtimestamp(MONDAY / 1000 + 36_000 + minute * 60, UTC).strftime("%Y%m%dT%H%M%SZ")
        labels = {"gpu": "0", "Hostname": "n1", "pod": "", "namespace": ""}
        taken = [sample(FIELDS["power_watts"], 0, 100 + minute, **labels), sample("go_info", 0, 1)]
        workspace.deliver(f"dcgm_n1_{stamp}.prom", untimed_text(taken))
    report = workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    assert workspace.query("select interval_ms, power_watts, part_id from {gpu_samples} order by sampled_at") == [
        *((60_000, 100.0, None), (60_000, 101.0, None), (60_000, 102.0, None)),
        *((120_000, 103.0, None), (60_000, 130.0, None), (60_000, 131.0, None)),
    ]
    assert (report.rows, report.skipped) == (6, 6)


def test_nodes_are_scraped_at_their_own_rate(workspace):
    """A GPU that was seen for an hour has an hour, however often; two samples hours apart tell no rate."""
    hours = {"fast": range(0, 3600, 15), "slow": range(0, 3600, 300), "rare": (0, 7200)}
    taken = [
        sample(FIELDS["power_watts"], MONDAY + at * 1000, 100, gpu="0", Hostname=node)
        for node, seconds in hours.items()
        for at in seconds
    ]
    workspace.deliver("dcgm_2026-01-05.prom", text(taken))
    workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    seen = workspace.query("select node_name, sum(interval_ms) // 1000 from {gpu_samples} group by all order by all")
    assert seen == [("fast", 3600), ("rare", 30 + 15), ("slow", 3600)]


def test_pods_that_share_a_gpu_have_all_of_its_time(workspace):
    taken = [
        sample(FIELDS["power_watts"], MONDAY + at * 1000, 100, gpu="0", Hostname="n1", namespace="ml", pod=f"w-{pod}")
        for at in range(0, 3600, 15)
        for pod in range(7)
    ]
    workspace.deliver("dcgm_2026-01-05.prom", text(taken))
    workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    assert workspace.query("select sum(interval_ms), count(distinct part_id) from {gpu_samples}") == [(3600_000, 7)]


def test_whose_pod_it_is(workspace):
    """Prometheus' own labels name the exporter; two pods on one GPU share its time."""
    power, gpu = FIELDS["power_watts"], {"gpu": "0", "Hostname": "n1"}
    own = {"namespace": "gpu-operator", "pod": "nvidia-dcgm-exporter-x", "instance": "10.0.0.1:9400", "job": "dcgm"}
    theirs = [{"exported_namespace": "ml", "exported_pod": name} for name in ("a", "b")]
    first = [
        *(sample(power, MONDAY, 300, **gpu, **own, **pod) for pod in theirs),
        sample(power, MONDAY, 70, **(gpu | {"gpu": "1"}), **(own | {"pod": "exporter-of-another-name"})),
        sample(power, MONDAY + 30_000, 310, **gpu, **own, **theirs[0]),
        sample(power, MONDAY + 30_000, 320, **gpu, **own, **theirs[0], container="other"),
    ]
    second = [sample(power, MONDAY + 7200_000, 50, **gpu, **own)]
    workspace.deliver("a_2026-01-05_20260106T000000Z.prom", text(first))
    workspace.deliver("b_2026-01-05_20260106T000000Z.prom", text(second))
    workspace.land(source(workspace, interval_seconds=30), "2026-01-05", "2026-01-06")
    assert workspace.query(
        "select gpu_index, part_id, interval_ms, power_watts from {gpu_samples} order by sampled_at, gpu_index, part_id"
    ) == [
        *((0, "ml/a", 15_000, 300.0), (0, "ml/b", 15_000, 300.0), (1, None, 30_000, 70.0)),
        *((0, "ml/a", 60_000, 320.0), (0, None, 30_000, 50.0)),
    ]


def test_other_spellings_and_labels(workspace):
    labels = {"gpu": "2", "hostname": "dcgm-exporter-6ldbb", "node": "gpu-7", "gpu_i_id": "1"}
    samples = [
        sample("dcgm_gpu_utilization", MONDAY, 40, **labels),
        sample("dcgm_fi_dev_power_usage", MONDAY, 200, **labels),
        sample("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", MONDAY, 5, **labels),
    ]
    workspace.deliver("a_2026-01-05.prom", text(samples))
    workspace.land(source(workspace, node_label="node"), "2026-01-05", "2026-01-06")
    assert workspace.query(ROWS) == [("gpu-7", 2, "1", None, MONDAY, 60_000, 40.0, None, None, 200.0, 5.0, None)]


def test_a_real_scrape(workspace, shared):
    workspace.deliver("dcgm_20260105T101500Z.prom", (shared / "dcgm" / "metrics.txt").read_bytes())
    workspace.deliver("dcgm_20260105T101600Z.prom", (shared / "dcgm" / "label_remap.txt").read_bytes())
    report = workspace.land(source(workspace, max_bad_share=0.1), "2026-01-05", "2026-01-06")
    assert workspace.query(ROWS) == [
        *(("424773df46e0", 0, None, part, ms, 60_000, 0.0, None, None, *more) for part, ms, more in (
            ("foo/bar", 1767608160_000, (None, None, None)),
            (None, 1767608100_000, (8.969, 128996013.0, 0.0)),
        )),
    ]  # fmt: skip
    # Two samples of fields that are read come without any label, so nobody knows of which GPU.
    assert workspace.quarantined() == [(98, "label Hostname is missing"), (104, "label Hostname is missing")]
    assert (report.tables["gpu_samples"].read, report.skipped) == (39, 35)


def test_a_file_about_something_else_is_refused(workspace):
    workspace.deliver("a_2026-01-05.prom", text([sample("up", MONDAY, 1, job="x")]))
    with pytest.raises(ApportionError, match=r"none of its 1 samples is a metric of dcgm-exporter"):
        workspace.land(source(workspace), "2026-01-05", "2026-01-06")
