"""Pods and the node inventory."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from orchestration.connectors.scheduler.kubernetes_notation import quantity


def pod(name: str, start: str | None, end: str | None, **more: object) -> str:
    record = {"cluster": "k", "namespace": "ml", "pod": name, "uid": f"u-{name}", "node": "n1"}
    record |= {
        "created_by_kind": "Job",
        "created_by_name": "train",
        "created": start,
        "start": start,
        "end": end,
    }
    record |= {"phase": "Succeeded" if end else "Running", "reason": "", "labels": {"user": "ann"}}
    record |= {"requests": {"nvidia.com/gpu": "1", "cpu": "1500m", "memory": "64Gi"}, "usage": {}}
    return json.dumps(record | more)


def test_pods_become_parts_of_their_controllers_job(workspace):
    one, two = "2026-01-05T01:00:00Z", "2026-01-05T02:00:00Z"
    lines = [
        pod(
            "w-0",
            one,
            two,
            usage={"cpu_cores": 1.2345, "memory_bytes": 1572864, "network_transmit_bytes": 456},
        ),
        pod("w-0", two, None),  # started again under the same name: a run of its own
        pod("w-1", one, two, phase="Failed", reason="Evicted", requests={}),
        pod("w-2", one, two, phase="Failed", reason="NodeLost", requests={"nvidia.com/mig-1g.10gb": 2}),
        pod(
            *("bare", one, two),
            created_by_kind=None,
            created_by_name=None,
            labels={"apportion.io/user": "bob", "checkpoint_minutes": "15"},
        ),
        pod("wait", None, None, phase="Pending"),
        pod("bad-1", one, None, phase="Succeeded"),
        pod("bad-2", one, two, requests={"cpu": "lots"}),
        pod("bad-3", two, one),
        pod("bad-4", "yesterday", None),
        '{"cluster":"k","namespace":"ml","pod":"cut-off',
    ]
    workspace.deliver("pods_2026-01-05_20260106T001500Z.jsonl.gz", "\n".join(lines))
    source = workspace.source(
        area="scheduler", kind="kubernetes", cluster="k", path="{data}/inbox/pods_*", max_bad_share=1.0
    )
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert (report.rows, report.skipped) == (5, 1)
    assert workspace.query(
        "select job_key, job_id, part_id, state, user_name, gpu_units, cpu_millicores, memory_mib"
        " from {jobs} order by line"
    ) == [
        ("k:ml/Job/train", "ml/train", "ml/w-0", "COMPLETED", "ann", 25200, 1500, 65536),
        ("k:ml/Job/train", "ml/train", "ml/w-0", "RUNNING", "ann", 25200, 1500, 65536),
        ("k:ml/Job/train", "ml/train", "ml/w-1", "PREEMPTED", "ann", None, None, None),
        ("k:ml/Job/train", "ml/train", "ml/w-2", "NODE_FAIL", "ann", 7200, None, None),
        ("k:ml/Pod/bare/u-bare", "ml/bare", "ml/bare", "COMPLETED", "bob", 25200, 1500, 65536),
    ]
    assert workspace.query(
        "select measured_cpu_millicores, measured_memory_mib, bytes_out from {jobs} where line = 1"
    ) == [(1235, 2, 456)]
    assert workspace.query("select distinct part_id, time_limit_ms, checkpoint_interval_ms from {jobs} order by 1") == [
        ("ml/bare", None, 900_000),
        ("ml/w-0", None, None),
        ("ml/w-1", None, None),
        ("ml/w-2", None, None),
    ]
    assert [line for line, _ in workspace.quarantined()] == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(
            ("500m", Fraction(1, 2)),
            ("64Gi", 64 * 2**30),
            ("1e3", 1000),
            ("0.5", Fraction(1, 2)),
            ("2k", 2000),
        ),
        *(("1E", 10**18), ("3Ki", 3072), ("100n", Fraction(1, 10**7)), ("12E2", 1200)),
    ],
)
def test_kubernetes_quantities(text, value):
    assert quantity(text) == value


def test_the_newest_inventory_is_in_force_on_every_day_of_the_window(workspace):
    header = "cluster,node,resource_id,provider,instance_type,pool,gpu_model,gpus,cores,memory_gib,from,to\n"
    rows = (
        "c,n1,i-1,acme,big,p1,h100,8,96,1024,2025-12-01T00:00:00Z,2026-01-06T12:00:00Z\n"
        "c,n1,i-1,acme,big,p2,h100,8,96,1024,2026-01-06T12:00:00Z,\n"
        "c,n2,,,,p1,,eight,96,1024,2026-01-01T00:00:00Z,\n"
        "c,n3,,,,p1,,0,0.5,1.5,2026-01-01T00:00:00Z,2026-01-01T00:00:00Z\n"
    )
    workspace.deliver("nodes_20260101T000000Z.csv", f"{header}c,old,,,,p1,,1,1,1,2020-01-01,\n")
    workspace.deliver("nodes_20260201T000000Z.csv", header + rows)
    source = workspace.source(area="inventory", kind="node_inventory", path="{data}/inbox/nodes_*", max_bad_share=1.0)
    report = workspace.land(source, "2026-01-05", "2026-01-09")
    assert report.files_read == ["nodes_20260201T000000Z.csv"]
    assert workspace.query("select distinct quarantined from {landings}") == [(2,)]
    assert workspace.query(
        "select date::varchar, pool_id, gpu_units, cpu_millicores, memory_mib from {node_inventory} order by all"
    ) == [
        ("2026-01-05", "p1", 201600, 96000, 1048576),
        ("2026-01-06", "p1", 201600, 96000, 1048576),
        ("2026-01-06", "p2", 201600, 96000, 1048576),
        ("2026-01-07", "p2", 201600, 96000, 1048576),
        ("2026-01-08", "p2", 201600, 96000, 1048576),
    ]
    # What has no end reaches to the last day that is landed; a later day reads it when it is landed.
    days, cursor = workspace.touched(source)
    assert (days[0], days[-1]) == ("2025-12-01", "2026-01-08")
    (workspace.data / "inbox" / "nodes_20260101T000000Z.csv").unlink()
    assert workspace.touched(source, cursor)[0] == []
