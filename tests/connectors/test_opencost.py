"""OpenCost and Kubecost allocations become pods that hold what was requested, or used where nothing was."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

import pytest

from orchestration.connectors import feeds
from orchestration.errors import ApportionError
from orchestration.landing.deliveries import discover
from orchestration.landing.engine import session

DAY = datetime(2026, 1, 5, tzinfo=UTC)
GIB = 2**30


def iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def allocation(pod: str | None, start: datetime, end: datetime, window: tuple[datetime, datetime], **more) -> dict:
    properties = {"cluster": "prod", "node": "n1", "namespace": "ml", "controller": "train", "controllerKind": "job"}
    if pod:
        properties |= {"pod": pod, "container": more.pop("container", "main"), "labels": {"user": "ann"}}
    properties |= more.pop("properties", {})
    own_name = "/".join(str(properties.get(key)) for key in ("cluster", "node", "namespace", "pod", "container"))
    return {
        "name": more.pop("name", own_name),
        "properties": properties,
        "window": {"start": iso(window[0]), "end": iso(window[1])},
        "start": iso(start),
        "end": iso(end),
        "minutes": (end - start) / timedelta(minutes=1),
        "cpuCoreRequestAverage": 2.0,
        "cpuCoreUsageAverage": 0.5,
        "ramByteRequestAverage": 4.0 * GIB,
        "ramByteUsageAverage": 1.0 * GIB,
        "gpuCount": 1.0,
        "gpuHours": 1.0,
        "networkTransferBytes": 1000.4,
        "totalCost": 12.5,
        **more,
    }


def named(*allocations: dict) -> dict:
    return {a["name"]: a for a in allocations}


def response(*sets: dict | None) -> str:
    return json.dumps({"code": 200, "data": list(sets)})


def source(workspace, **more):
    return workspace.source(
        **{"area": "scheduler", "kind": "opencost", "path": "{data}/inbox/alloc_*", "max_bad_share": 1.0, **more}
    )


def test_containers_add_up_to_their_pod_and_windows_follow_each_other(workspace):
    hours = [(DAY + timedelta(hours=h), DAY + timedelta(hours=h + 1)) for h in range(2)]
    half = timedelta(minutes=30)
    first = named(
        allocation("w-0", *hours[0], hours[0]),
        # A second container for half of the time: on average half of what it asks for.
        allocation("w-0", hours[0][0] + half, hours[0][1], hours[0], container="side", cpuCoreRequestAverage=1.0),
        allocation("w-1", hours[0][0] - half, hours[0][1] + half, hours[0], cpuCoreRequestAverage=0, gpuCount=0.25),
        allocation("bare", *hours[0], hours[0], properties={"controller": None, "controllerKind": None}),
        allocation("x", *hours[0], hours[0], name="__idle__", properties={"pod": None}),
        allocation("x", *hours[0], hours[0], name="prod/__unmounted__/__unmounted__"),
    )
    second = named(allocation("w-0", hours[1][0], hours[1][1] - half, hours[1]))
    workspace.deliver("alloc_2026-01-05.json", response(first, None, second))
    report = workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.skipped, report.quarantined) == (4, 3, 0)
    assert workspace.query(
        "select job_key, part_id, strftime(start_at, '%H:%M'), strftime(end_at, '%H:%M'), gpu_units, cpu_millicores,"
        " memory_mib, measured_cpu_millicores, bytes_out, node_names, user_name from {jobs} order by line"
    ) == [
        ("prod:ml/job/train", "ml/w-0", "00:00", "01:00", 37800, 2500, 6144, 750, 2000, "n1", "ann"),
        ("prod:ml/job/train", "ml/w-1", "00:00", "01:00", 6300, None, 4096, 500, 1000, "n1", "ann"),
        ("prod:ml/Pod/bare", "ml/bare", "00:00", "01:00", 25200, 2000, 4096, 500, 1000, "n1", "ann"),
        ("prod:ml/job/train", "ml/w-0", "01:00", "01:30", 25200, 2000, 4096, 500, 1000, "n1", "ann"),
    ]
    [variant] = report.variants
    assert variant == "OpenCost allocations, JSON, 2 windows, pods and containers"


def test_any_arrangement_says_the_same_and_nothing_is_lost(workspace):
    """Random pods as one response, a set, lines and an array: equal rows, and the container-seconds of a plain sum."""
    dice = random.Random(7)
    window = (DAY, DAY + timedelta(days=1))
    allocations, core_ms = [], 0
    for pod in range(40):
        for container in range(dice.randint(1, 3)):
            start = DAY + timedelta(minutes=dice.randint(0, 700))
            end = start + timedelta(minutes=dice.randint(1, 700))
            cores = dice.randint(1, 64000)
            core_ms += cores * int((end - start) / timedelta(milliseconds=1))
            allocations.append(
                allocation(
                    f"p-{pod}", start, end, window, container=f"c{container}", cpuCoreRequestAverage=cores / 1000
                )
            )
    lines = [json.dumps(a) for a in allocations]
    forms = {
        "response": response(named(*allocations)),
        "set": json.dumps(named(*allocations), indent=1),
        "lines.gz": "\n".join(lines),
        "array": "[" + ",\n".join(lines) + "]",
    }
    seen = set()
    for form, text in forms.items():
        path = workspace.deliver(f"alloc_2026-01-05_{form}", text)
        report = workspace.land(source(workspace, cluster="k"), "2026-01-05", "2026-01-06")
        assert (report.rows, report.tables["jobs"].read) == (40, len(allocations))
        rows = workspace.query("select * exclude (delivery, line, delivered_at) from {jobs} order by all")
        seen.add(str(rows))
        [(held, parts)] = workspace.query(
            "select sum(cpu_millicores::hugeint * (epoch_ms(end_at) - epoch_ms(start_at))),"
            " sum(epoch_ms(end_at) - epoch_ms(start_at)) from {jobs}"
        )
        assert abs(int(held) - core_ms) <= int(parts) / 2  # a pod's mean is rounded to a thousandth of a core
        path.unlink()
    assert len(seen) == 1


def test_aggregated_answers_are_loaded_and_doubted(workspace):
    window = (DAY, DAY + timedelta(days=1))
    bare = {"controller": None, "controllerKind": None, "node": None, "namespace": "ml"}
    sets = named(
        allocation(None, *window, window, name="ml", properties=bare),
        allocation(None, *window, window, name="__unallocated__", properties=bare | {"namespace": None}),
    )
    workspace.deliver("alloc_2026-01-05.json", response(sets))
    made = source(workspace)
    report = workspace.land(made, "2026-01-05", "2026-01-06")
    assert report.rows == 2
    assert workspace.query("select job_key, part_id, namespace from {jobs} order by 1") == [
        ("prod:__unallocated__", "__unallocated__", None),
        ("prod:ml", "ml", "ml"),
    ]
    [feed] = feeds(made)
    with session(workspace.data) as con:
        [found] = feed.read(con, discover(feed.pattern, source="src", optional=False)).found
    assert "aggregated" in found.variant
    assert [doubt.split(":")[0] for doubt in found.doubts] == [
        "2 allocations name no pod",
        "1 allocations are __unallocated__",
    ]


def test_a_namespace_may_be_called_data(workspace):
    window = (DAY, DAY + timedelta(days=1))
    bare = {"controller": None, "namespace": "data"}
    workspace.deliver(
        "alloc_1.json", json.dumps(named(allocation(None, *window, window, name="data", properties=bare)))
    )
    workspace.deliver("alloc_2.json", json.dumps({"code": 200, "data": ["no set", None]}))
    report = workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (1, 0)
    assert workspace.query("select job_key from {jobs}") == [("prod:data",)]


def test_what_cannot_be_read_is_kept_aside_with_its_text(workspace):
    window = (DAY, DAY + timedelta(hours=1))
    good = allocation("a", *window, window)
    lines = [
        good,
        good,
        allocation("b", *window, window, cpuCoreRequestAverage="much"),
        allocation("c", *window, window, gpuCount=-1),
        allocation("d", window[1], window[0], window),
        allocation("e", *window, window, properties={"cluster": None}, name="e"),
        allocation("f", *window, window) | {"start": "soon"},
        allocation("g", *window, window, cpuCoreUsageAverage=1e300),
        allocation("h", *window, window, cpuCoreUsageAverage=float("nan")),
    ]
    text = "\n".join(map(json.dumps, lines)) + '\n{"name": "cut", "properties": {"clus\n'
    workspace.deliver("alloc_1.jsonl", text)
    report = workspace.land(source(workspace), "2026-01-05", "2026-01-06")
    assert (report.rows, report.quarantined) == (1, 9)
    assert workspace.quarantined() == [
        (2, "repeats an allocation of the same window"),
        (3, "cpuCoreRequestAverage is not a number: much"),
        (4, "an amount is negative"),
        (5, "ends before it starts"),
        (6, "properties.cluster is missing"),
        (7, "start is not a time: soon"),
        (8, "cpuCoreUsageAverage is not a number: 1e+300"),
        (9, "cpuCoreUsageAverage is not a number: NaN"),
        (10, "not a JSON object: truncated or broken"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (response({"a": {"name": "a"}})[:-20], "the response is cut off"),
        (json.dumps({"code": 500, "data": None, "message": "boom"}), "error message of the server"),
        (response(None, {}), "there is no allocation"),
        (
            response(
                named(allocation("a", DAY, DAY + timedelta(hours=1), (DAY, DAY + timedelta(hours=1)))),
                named(allocation("a", DAY, DAY + timedelta(hours=1), (DAY, DAY + timedelta(days=1)))),
            ),
            "overlap",
        ),
    ],
)
def test_a_file_that_would_mislead_is_refused(workspace, text, message):
    workspace.deliver("alloc_2026-01-05.json", text)
    with pytest.raises(ApportionError, match=message):
        workspace.land(source(workspace), "2026-01-05", "2026-01-06")
