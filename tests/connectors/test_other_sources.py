"""Pods, GPU samples, storage readings, licence seats and the node inventory."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pyarrow as pa
import pytest

from orchestration.connectors.scheduler.notation import quantity
from orchestration.errors import ApportionError


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


def samples(day: str, hosts: list[str | None], *, minutes: int = 3, **extra: pa.Array) -> pa.Table:
    start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    rows = [(start + timedelta(minutes=m), host, gpu) for host in hosts for gpu in range(2) for m in range(minutes)]
    columns = {
        "timestamp": pa.array([row[0] for row in rows], pa.timestamp("ms", tz="UTC")),
        "Hostname": pa.array([row[1] for row in rows]),
        "gpu": pa.array([row[2] for row in rows], pa.int8()),
        "hpc_job": pa.array(["7" if row[2] else None for row in rows]),
        "DCGM_FI_DEV_POWER_USAGE": pa.array([9223372036854775794.0 for _ in rows]),
    }
    return pa.table({**columns, **extra})


def telemetry(workspace):
    return workspace.source(area="telemetry", kind="files", cluster="c", path="{data}/inbox/dcgm_*", max_bad_share=0.5)


def test_samples_are_landed_as_they_are_and_broken_ones_kept_aside(workspace):
    workspace.deliver("dcgm_2026-01-05.parquet", samples("2026-01-05", ["n1", None]))
    workspace.deliver("dcgm_2026-01-06.parquet", samples("2026-01-06", ["n1"]))
    report = workspace.land(telemetry(workspace), "2026-01-05", "2026-01-07")
    assert (report.rows, report.quarantined) == (12, 6)
    assert workspace.query(
        "select distinct cluster_id, node_name, part_id, interval_ms, power_watts, util_percent"
        " from {gpu_samples} order by 3"
    ) == [
        ("c", "n1", "7", 60000, 9.223372036854776e18, None),
        ("c", "n1", None, 60000, 9.223372036854776e18, None),
    ]
    assert workspace.quarantined()[0] == (7, "Hostname is missing")


def test_a_day_of_samples_is_the_newest_delivery_that_is_complete_for_it(workspace):
    workspace.deliver("dcgm_2026-01-05_20260106T000000Z.parquet", samples("2026-01-05", ["old", "gone"]))
    # A file that runs over midnight: the next day's file, not this one, speaks for the next day.
    over = pa.concat_tables([samples("2026-01-05", ["new"]), samples("2026-01-06", ["stray"])])
    workspace.deliver("dcgm_2026-01-05_20260107T000000Z.parquet", over)
    source = telemetry(workspace)
    workspace.land(source, "2026-01-05", "2026-01-07")
    assert workspace.query("select date::varchar, node_name, count(*) from {gpu_samples} group by 1, 2 order by 1") == [
        ("2026-01-05", "new", 6),
        ("2026-01-06", "stray", 6),
    ]
    workspace.deliver("dcgm_2026-01-06_20260107T000000Z.parquet", samples("2026-01-06", ["own"]))
    report = workspace.land(source, "2026-01-05", "2026-01-07")
    assert workspace.query("select node_name from {gpu_samples} where date = '2026-01-06' group by 1") == [("own",)]
    assert [str(day) for day in report.days_changed] == ["2026-01-06"]
    assert report.tables["gpu_samples"].superseded == 18


def test_pods_and_epoch_times_in_samples(workspace):
    epoch = pa.array([1767578400, 1767578400500, None, -1])
    table = pa.table(
        {
            "timestamp": epoch,
            "Hostname": ["n1"] * 4,
            "gpu": ["0", "1", "2", "3"],
            "namespace": ["ml", None, "", "x"],
            "pod": ["w-0", "w-0", "", "y"],
            "DCGM_FI_DEV_GPU_UTIL": ["12.5", "n/a", None, None],
        }
    )
    workspace.deliver("dcgm_2026-01-05.parquet", table)
    source = telemetry(workspace).model_copy(update={"max_bad_share": 1.0})
    workspace.land(source, "2026-01-05", "2026-01-06")
    assert workspace.query("select part_id, util_percent, gpu_index from {gpu_samples}") == [("ml/w-0", 12.5, 0)]
    assert workspace.quarantined() == [
        (2, "DCGM_FI_DEV_GPU_UTIL is not a number"),
        (3, "timestamp is missing or not a time"),
        (4, "timestamp is missing or not a time"),
    ]


def test_brackets_in_the_name_of_a_folder_are_no_pattern(workspace):
    odd = type(workspace)(workspace.root / "a [1] folder")
    odd.data.mkdir(parents=True)
    odd.deliver("dcgm_2026-01-05.parquet", samples("2026-01-05", ["n1", None]))
    report = odd.land(telemetry(odd), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (6, 6)


def test_a_file_that_is_no_parquet_is_named(workspace):
    workspace.deliver("dcgm_2026-01-05.parquet", "PAR1 but cut")
    with pytest.raises(ApportionError, match=r"dcgm_2026-01-05.parquet: not a readable Parquet file"):
        workspace.land(telemetry(workspace), "2026-01-05", "2026-01-06")


def test_storage_readings_are_valid_for_their_day(workspace):
    workspace.deliver(
        "usage_2026-01-05.csv",
        'filesystem,path,owner,group,bytes,date\nscratch,"/a, b",ann,nlp,123,2026-01-05\n'
        "scratch,/c,ann,nlp,n/a,2026-01-05\nscratch,/d,,,-1,2026-01-05\nscratch,/e,,,1.5,2026-01-05\n",
    )
    source = workspace.source(area="storage", kind="storage_usage", path="{data}/inbox/usage_*", max_bad_share=1.0)
    report = workspace.land(source, "2026-01-04", "2026-01-07")
    assert (report.rows, report.quarantined) == (1, 3)
    assert workspace.query(
        "select date::varchar, path, owner, account, stored_bytes,"
        " valid_to_at - valid_from_at = interval 1 day from {storage_usage}"
    ) == [("2026-01-05", "/a, b", "ann", "nlp", 123, True)]


def test_an_open_seat_ends_when_its_file_was_delivered_until_it_comes_back(workspace):
    header = "product,user,account,host,seats,checked_out,checked_in\n"
    out = "cad,ann,nlp,ws1,2,2026-01-30T08:00:00Z,"
    other = "cad,ann,nlp,ws2,1,2026-01-30T08:00:00Z,2026-01-30T09:00:00Z\ncad,bob,nlp,ws2,two,2026-01-30T08:00:00Z,\n"
    workspace.deliver("seats_2026-01.csv", f"{header}{out}\n{other}", mtime="2026-02-01T00:10:00")
    source = workspace.source(area="license", kind="seats", path="{data}/inbox/seats_*", max_bad_share=1.0)
    workspace.land(source, "2026-01-01", "2026-02-04")
    assert workspace.query(
        "select date::varchar, sum(seats)::int, count(as_of_at) from {license_usage} group by 1 order by 1"
    ) == [
        *(("2026-01-30", 3, 1), ("2026-01-31", 2, 1), ("2026-02-01", 2, 1)),
    ]
    workspace.deliver("seats_2026-02.csv", f"{header}{out}2026-02-03T00:00:00Z\n", mtime="2026-03-01T00:10:00")
    workspace.land(source, "2026-01-01", "2026-02-04")
    assert workspace.query("select date::varchar, seats from {license_usage} where host_name = 'ws1' order by 1") == [
        *(("2026-01-30", 2), ("2026-01-31", 2), ("2026-02-01", 2), ("2026-02-02", 2)),
    ]
    assert workspace.query("select count(as_of_at) from {license_usage}") == [(0,)]


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
