"""What a pod really used, where a file also holds cAdvisor's series: mean cores, mean memory, bytes sent.

Counters begin with the container that they count, so the first value in a file is use as well. Where one falls, its
container was started again. Sums are of whole microseconds and bytes, so that they are the same in any order.
"""

from __future__ import annotations

from duckdb import DuckDBPyConnection

from orchestration.connectors.scheduler.kubernetes_lives import own
from orchestration.connectors.sql import quoted

USAGE = {
    "container_cpu_usage_seconds_total": "cpu",
    "container_memory_working_set_bytes": "memory",
    "container_network_transmit_bytes_total": "sent",
    # OpenMetrics names the family without the suffix of its samples.
    "container_cpu_usage_seconds": "cpu",
    "container_network_transmit_bytes": "sent",
}


def load_usage(con: DuckDBPyConnection) -> None:
    """The temp table ksm_usage, by pod_number."""
    con.execute(f"create or replace temp table ksm_usage_points as {_points()}")
    con.execute(f"create or replace temp table ksm_usage as {_usage()}")
    con.execute("drop table ksm_usage_points")


def _points() -> str:
    """Samples of each pod in its time: of its containers, or of the whole pod where those are not there.

    Network is counted once per pod, under the container `POD` or none; pods on the host's network would be given the
    traffic of the whole node, so they have none.
    """
    return f"""
        with counted as (
            select series, metric, {own("namespace")} as namespace, {own("pod")} as pod,
                case coalesce({own("container")}, '') when '' then 1 when 'POD' then 2 else 0 end as level
            from ksm_series
            where metric in ({quoted(set(USAGE.values()))})
                and not (metric = 'sent' and coalesce(labels['interface'], '') = 'lo')
        )

        select l.pod_number, c.metric, s.series, s.taken_at, l.start_at,
            cast(round(case c.metric when 'cpu' then s.value * 1000000 else s.value end) as hugeint) as amount
        from ksm_samples as s
        join counted as c using (series)
        join ksm_lives as l
            on l.file = s.file and l.namespace = c.namespace and l.pod = c.pod
            and s.taken_at >= l.start_at and s.taken_at <= coalesce(l.end_at, l.as_of_at)
        where s.value >= 0 and s.value < 1e18 and (c.metric <> 'sent' or l.host_network is distinct from 'true')
        qualify c.level = min(c.level) over (partition by l.pod_number, c.metric)
    """


def _usage() -> str:
    return """
        with steps as (
            select *, lag(amount) over (partition by pod_number, series order by taken_at) as before
            from ksm_usage_points
        ),

        added as (
            select pod_number, metric, start_at, max(taken_at) as last_at, count(distinct taken_at) as instants,
                sum(amount) as level, sum(case when amount >= before then amount - before else amount end) as total
            from steps group by pod_number, metric, start_at
        )

        select pod_number,
            any_value(printf('%.9f', total / date_diff('microsecond', start_at, last_at)))
                filter (metric = 'cpu' and last_at > start_at) as cpu_cores,
            any_value(printf('%.3f', level / instants)) filter (metric = 'memory') as memory_bytes,
            any_value(cast(total as varchar)) filter (metric = 'sent') as sent_bytes
        from added
        group by pod_number
    """
