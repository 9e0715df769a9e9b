"""OpenCost and Kubecost allocations: what each container held in each window, as jobs.

The containers of a pod are summed, weighted by the time that each of them ran, so that a pod is one part of its
controller's job as it is for `kubernetes`, and samples that name the pod find it. The money in these files is an
estimate at list prices and is not read: bills say what was paid.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Found, Reading, Reject
from orchestration.connectors.billing.json_records import records
from orchestration.connectors.sql import backwards, first_reason, literal, minutes_ms, missing, quoted, unreadable, utc
from orchestration.connectors.tables import PACKED
from orchestration.connectors.text import Sink, packing
from orchestration.errors import ApportionError
from orchestration.landing.schemas import GPU_UNITS_PER_GPU
from orchestration.settings import OpenCostSource

TEXTS = {
    "cluster": "$.properties.cluster",
    "node": "$.properties.node",
    "namespace": "$.properties.namespace",
    "kind": "$.properties.controllerKind",
    "controller": "$.properties.controller",
    "pod": "$.properties.pod",
    "container": "$.properties.container",
    "window_start": "$.window.start",
    "window_end": "$.window.end",
    "started": "$.start",
    "ended": "$.end",
    "cpu_request": "$.cpuCoreRequestAverage",
    "cpu_usage": "$.cpuCoreUsageAverage",
    "memory_request": "$.ramByteRequestAverage",
    "memory_usage": "$.ramByteUsageAverage",
    "gpu_count": "$.gpuCount",
    "gpu_hours": "$.gpuHours",
    "sent": "$.networkTransferBytes",
    # Prometheus, which these labels come through, writes an underscore for what is no letter or digit.
    "user_label": "$.properties.labels.apportion_io_user",
    "plain_user_label": "$.properties.labels.user",
    "node_group": "$.properties.labels.node_group",
    "checkpoint": "$.properties.labels.checkpoint_minutes",
}
AMOUNTS = ("cpu_request", "cpu_usage", "memory_request", "memory_usage", "gpu_count", "gpu_hours", "sent")
FLUSH_ALLOCATIONS = 10_000
ALLOCATION_KEYS = {"properties", "window", "minutes", "cpuCoreHours"}
SCHEMA = pa.schema([("file", pa.int64()), ("line", pa.int64()), ("name", pa.string()), ("raw", pa.string())])


def feeds(source: OpenCostSource) -> list[Feed]:
    def read(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> Reading:
        return _read(con, deliveries, source)

    return [Feed("jobs", source.path, read)]


def _read(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: OpenCostSource) -> Reading:
    sink = Sink(con, "allocation_texts", SCHEMA)
    rejects: list[Reject] = []
    counts = [_load(sink, file, delivery, rejects) for file, delivery in enumerate(deliveries)]
    con.execute(f"create or replace temp table allocations as {_once(_judged(source))}")
    _refuse_overlapping_windows(con, deliveries)
    # A line number here counts allocations, so what a bad one looks like has to be kept now.
    kept = con.execute(
        "select a.file, a.line, a.bad_reason, t.raw from allocations as a join allocation_texts as t using (file, line)"
        " where bad_reason is not null"
    ).fetchall()
    rejects += [Reject(*bad) for bad in kept]
    con.execute("drop table allocation_texts")
    con.execute(f"create or replace temp table allocation_rows as {_pods()}")
    found = _found(con, deliveries)
    con.execute("drop table allocations")
    return Reading("from allocation_rows", counts, rejects, found=found)


def _load(sink: Sink, file: int, delivery: Delivery, rejects: list[Reject]) -> int:
    """The allocations of a file, numbered from 1 in the order in which they stand there."""
    number, batch = 0, []

    def flush() -> None:
        columns = zip(*batch, strict=True) if batch else [[], [], [], []]
        sink.add(pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA))
        sink.flush()
        batch.clear()

    for record in records(delivery.path):
        if not record.complete:
            if record.line == 1 and '"data"' in record.text[:1000]:
                raise ApportionError(
                    f"{delivery.path}, line 1: the response is cut off, so allocations of its window are missing",
                    "fetch it again, and compare the length with the one that the server announces",
                )
            number += 1
            rejects.append(Reject(file, number, "not a JSON object: truncated or broken", record.text))
            continue
        # Numbers stay texts: what is too large for one, or NaN, is for SQL to judge.
        document = json.loads(record.text, parse_float=str, parse_constant=str)
        for name, allocation in _allocations(delivery, document):
            number += 1
            batch.append((file, number, name, json.dumps(allocation)))
            if len(batch) >= FLUSH_ALLOCATIONS:
                flush()
    flush()
    if not number:
        raise ApportionError(
            f"{delivery.path}: there is no allocation in the file",
            "fetch the window again; if nothing ran in it, remove the file",
        )
    return number


def _allocations(delivery: Delivery, document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """A response, a set of allocations by name, or one allocation: each allocation with its name."""
    if "data" in document and ("code" in document or not isinstance(document["data"], dict)):
        if document.get("code", 200) != 200:
            raise ApportionError(
                f"{delivery.path}: the file is an error message of the server: {str(document)[:200]}",
                "fetch the window again, and keep only answers with code 200",
            )
        data = document["data"]
        for allocation_set in data if isinstance(data, list) else [data]:
            if allocation_set:
                yield from allocation_set.items() if isinstance(allocation_set, dict) else [("", allocation_set)]
    elif ALLOCATION_KEYS & document.keys():
        yield str(document.get("name", "")), document
    else:
        yield from document.items()


def _number(column: str) -> str:
    """A number that a cluster could have; what is beyond (or infinite) is none, and would not fit our units."""
    most = "1e18" if column.startswith(("memory", "sent")) else "1e12"
    return f"case when abs(try_cast({column} as double)) < {most} then try_cast({column} as double) end"


def _judged(source: OpenCostSource) -> str:
    """One row per allocation: typed, clipped to its window, and with what is wrong with it."""
    columns = ", ".join(f"nullif(texts[{place}], '') as {name}" for place, name in enumerate(TEXTS, start=1))
    cluster = literal(source.cluster) if source.cluster else "cluster"
    special = "list_contains(string_split(name, '/'), {})"
    nothing = " and ".join(f"coalesce({_number(amount)}, 0) = 0" for amount in AMOUNTS)
    skip = first_reason(
        (special.format("'__idle__'"), literal("idle capacity, which is nobody's use")),
        (special.format("'__unmounted__'"), literal("volumes that no pod mounts")),
        (f"{special.format(literal('__unallocated__'))} and {nothing}", literal("holds nothing")),
    )
    reason = first_reason(
        ("not is_object", literal("not a JSON object")),
        ("skip_reason is not null", "null"),
        missing("cluster_id", "properties.cluster"),
        ("name = ''", literal("name is missing")),
        missing("coalesce(started, window_start)", "start"),
        missing("coalesce(ended, window_end)", "end"),
        *(
            unreadable(column, utc(column), name, "a time")
            for column, name in (
                *(("started", "start"), ("ended", "end")),
                *(("window_start", "window.start"), ("window_end", "window.end")),
            )
        ),
        backwards("start_at", "end_at"),
        *(unreadable(amount, _number(amount), TEXTS[amount][2:], "a number") for amount in AMOUNTS),
        (" or ".join(f"{_number(amount)} < 0" for amount in AMOUNTS), literal("an amount is negative")),
    )
    gpus = f"coalesce({_number('gpu_count')}, {_number('gpu_hours')} * 3600 / nullif(epoch(end_at - start_at), 0))"
    return f"""
        select
            file,
            line,
            name,
            {cluster} as cluster_id,
            {", ".join(TEXTS)},
            labels,
            {utc("window_start")} as window_start_at,
            {utc("window_end")} as window_end_at,
            greatest({utc("started")}, window_start_at) as start_at,
            least({utc("ended")}, window_end_at) as end_at,
            epoch_us(end_at) - epoch_us(start_at) as lasted_us,
            {", ".join(f"{_number(amount)} as {amount}_number" for amount in AMOUNTS)},
            {gpus} as gpus_number,
            {skip} as skip_reason,
            {reason} as bad_reason
        from (
            select file, line, name, is_object, {columns},
                case when json_type(raw, '$.properties.labels') = 'OBJECT'
                    and json_keys(raw, '$.properties.labels') <> []
                    then cast(json_extract(raw, '$.properties.labels') as varchar) end as labels
            from (
                select file, line, coalesce(name, '') as name, raw, json_type(raw) = 'OBJECT' as is_object,
                    json_extract_string(raw, [{quoted(TEXTS.values())}]) as texts
                from allocation_texts
            )
        )
    """


def _once(judged: str) -> str:
    """An allocation that is there twice would be held twice."""
    again = "row_number() over (partition by {} order by line)".format(
        "file, name, cluster_id, node, namespace, pod, container, window_start_at, window_end_at, skip_reason"
    )
    return f"""
        select * replace (coalesce(bad_reason, case when {again} > 1 and skip_reason is null
            then 'repeats an allocation of the same window' end) as bad_reason)
        from ({judged})
    """


def _refuse_overlapping_windows(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> None:
    """Hours and their day in one file would count everything twice."""
    for file, one, other in con.execute(
        """
        with windows as (
            select distinct file, window_start_at as since, window_end_at as until from allocations
            where bad_reason is null and skip_reason is null
        )
        select file, cast(one.since as varchar), cast(other.since as varchar)
        from windows as one join windows as other using (file)
        where one.since <= other.since and other.since < one.until
            and (one.since, one.until) <> (other.since, other.until)
        order by all limit 1
        """
    ).fetchall():
        raise ApportionError(
            f"{deliveries[file].path}: the windows that begin at {one} and {other} overlap",
            "fetch the whole time in steps, or in one window, but not both into one file",
        )


def _pods() -> str:
    """Allocations summed to pods (or to whatever else they were aggregated by), one row per window.

    The sum stands on the first line; the others are skipped as parts of it. OpenCost writes zero for "no request".
    """

    def mean(amount: str, factor: float = 1.0) -> str:
        """Of amounts over parts of the pod's time, the mean over all of it; in whole numbers, which have one sum."""
        thousandths = f"cast(round({amount} * {factor * 1000}) as hugeint)"
        total = f"sum({thousandths} * case when pod_us > 0 then lasted_us else 1 end) over pod"
        time = "(case when pod_us > 0 then pod_us else 1 end * 1000)"
        return f"cast((2 * {total} + {time}) // (2 * {time}) as bigint)"

    return f"""
        with known as (
            select *,
                case when pod is null then name else concat_ws('/', namespace, pod) end as part_id,
                case
                    when pod is null then name
                    when controller is null then concat_ws('/', namespace, 'Pod', pod)
                    else concat_ws('/', namespace, coalesce(kind, 'Controller'), controller)
                end as job
            from allocations
        ),

        timed as (
            select *, max(epoch_us(end_at)) over pod - min(epoch_us(start_at)) over pod as pod_us
            from known
            where bad_reason is null and skip_reason is null
            window pod as (partition by file, cluster_id, job, part_id, node, window_start_at)
        )

        select
            file,
            line,
            cluster_id,
            'kubernetes' as scheduler,
            cluster_id || ':' || job as job_key,
            case when pod is null then name else concat_ws('/', namespace, coalesce(controller, pod)) end as job_id,
            part_id,
            cast(null as varchar) as array_job_id,
            coalesce(user_label, plain_user_label) as user_name,
            cast(null as varchar) as account,
            namespace,
            node_group as partition,
            cast(null as varchar) as qos,
            case when pod is null then name else coalesce(controller, pod) end as job_name,
            labels,
            'UNKNOWN' as state,
            cast(null as varchar) as exit_code,
            cast(null as timestamptz) as submit_at,
            min(start_at) over pod as start_at,
            max(end_at) over pod as end_at,
            cast(null as timestamptz) as as_of_at,
            cast(0 as bigint) as suspended_ms,
            cast(null as bigint) as time_limit_ms,
            {minutes_ms("checkpoint")} as checkpoint_interval_ms,
            node as node_names,
            {mean("gpus_number", GPU_UNITS_PER_GPU)} as gpu_units,
            nullif({mean("cpu_request_number", 1000)}, 0) as cpu_millicores,
            nullif({mean("memory_request_number", 1 / 2**20)}, 0) as memory_mib,
            {mean("cpu_usage_number", 1000)} as measured_cpu_millicores,
            {mean("memory_usage_number", 1 / 2**20)} as measured_memory_mib,
            cast(sum(cast(round(sent_number) as bigint)) over pod as bigint) as bytes_out,
            case when line > min(line) over pod then 'a container that is summed with the others of its pod' end
                as skip_reason,
            cast(null as varchar) as bad_reason
        from timed
        window pod as (partition by file, cluster_id, job, part_id, node, window_start_at)
        union all by name
        select file, line, skip_reason from allocations where bad_reason is null and skip_reason is not null
    """


def _found(con: DuckDBPyConnection, deliveries: Sequence[Delivery]) -> list[Found]:
    facts = {
        file: rest
        for file, *rest in con.execute(
            """
            select file, count(distinct (window_start_at, window_end_at)), count(*) filter (pod is null),
                count(*) filter (pod is not null), count(*) filter (contains(name, '__unallocated__'))
            from allocations where bad_reason is null and skip_reason is null group by file
            """
        ).fetchall()
    }
    found = []
    for file, delivery in enumerate(deliveries):
        windows, without_pod, with_pod, unallocated = facts.get(file, (0, 0, 0, 0))
        doubts = []
        if without_pod:
            doubts.append(
                f"{without_pod} allocations name no pod: they are aggregated, and held evenly over the time they span"
            )
        if unallocated:
            doubts.append(f"{unallocated} allocations are __unallocated__: use that has no name under this aggregation")
        what = "pods and containers" if with_pod else "aggregated"
        form = f"{PACKED[packing(delivery.path)]}JSON, {windows} {'window' if windows == 1 else 'windows'}, {what}"
        found.append(Found(f"OpenCost allocations, {form}", doubts=tuple(doubts)))
    return found
