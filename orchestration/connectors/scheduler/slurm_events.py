"""Node events: `sacctmgr show event` lists the times in which nodes were down or drained."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reading
from orchestration.connectors.scheduler.slurm_load import load_cells
from orchestration.connectors.scheduler.slurm_notation import node_names
from orchestration.connectors.scheduler.slurm_states import is_available
from orchestration.connectors.scheduler.slurm_text import Asked
from orchestration.connectors.scheduler.slurm_time import (
    as_of_sql,
    candidates_sql,
    clock_seconds,
    need_zone,
    pick_sql,
    picked,
    time_forms,
    years_of,
)
from orchestration.connectors.sql import backwards, first_reason, literal, map_distinct
from orchestration.settings import SlurmSource

NEEDED = (("NodeName",), ("TimeStart",), ("TimeEnd",))
COLUMNS = ("Cluster", "NodeName", "TimeStart", "TimeEnd", "State", "Duration", "Reason")
TIMES = ("TimeStart", "TimeEnd")


def read_events(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    asked = Asked("sacctmgr events", ("NodeName", "Node Name"), source.delimiter)
    files = load_cells(con, "event_cells", deliveries, COLUMNS, asked)
    for delivery, file in zip(deliveries, files, strict=True):
        file.require(delivery, NEEDED)
    need_zone(con, "event_cells", TIMES, deliveries, source)
    nodes = "select distinct NodeName from event_cells where NodeName is not null"
    map_distinct(con, "event_nodes", nodes, [("names", pa.string())], node_names)
    states = "select distinct State from event_cells where State is not null"
    map_distinct(con, "event_states", states, [("is_available", pa.bool_())], is_available)
    rows = _select(source, years_of(con, "event_cells", TIMES))
    con.execute(f"create or replace temp table node_event_rows as {rows}")
    forms = time_forms(con, "event_cells", TIMES, source.timezone)
    return Reading(
        "from node_event_rows",
        [file.count for file in files],
        [reject for file in files for reject in file.rejects],
        found=[file.found(forms.get(place)) for place, file in enumerate(files)],
    )


def _select(source: SlurmSource, years: tuple[int, int]) -> str:
    start, end = (candidates_sql(column, source.timezone, *years) for column in ("f.TimeStart", "f.TimeEnd"))
    cluster = literal(source.cluster)
    skip = first_reason(
        ("NodeName is null", literal("about the cluster, not a node")),
        ("is_named and Cluster <> own_cluster", "'an event of cluster ' || Cluster"),
        ("is_available", "'the node took jobs: ' || State"),
    )
    reason = first_reason(
        ("skip_reason is not null", "null"),
        (
            "Cluster <> own_cluster",
            "'of cluster ' || Cluster || ' in a file of ' || own_cluster || '; the source names neither'",
        ),
        ("starts is null", literal("TimeStart is missing")),
        ("len(starts) = 0", "'TimeStart is not a time: ' || TimeStart"),
        ("len(ends) = 0", "'TimeEnd is not a time: ' || TimeEnd"),
        backwards("start_at", "end_at"),
        ("nodes_reason is not null", "nodes_reason"),
    )
    return f"""
        with clusters as (
            select
                file,
                bool_or(Cluster = {cluster}) as is_named,
                case when is_named then {cluster} else mode(Cluster) end as own_cluster
            from event_cells group by file
        ),

        timed as (
            select f.*, {start} as starts, {end} as ends, {clock_seconds("f.Duration")} as lasted,
                unnest(coalesce(string_split(n.names, ','), [cast(null as varchar)])) as node_name,
                n.reason as nodes_reason, s.is_available, c.is_named, c.own_cluster, d.delivered_at
            from event_cells as f
            join deliveries as d using (file)
            join clusters as c using (file)
            left join event_nodes as n on n.text = f.NodeName
            left join event_states as s on s.text = f.State
        ),

        picked as (select *, {pick_sql("lasted", "delivered_at")} as pick from timed)

        select
            file,
            line,
            {cluster} as cluster_id,
            node_name,
            State as state,
            Reason as reason,
            {picked("starts", 1)} as start_at,
            {picked("ends", 2)} as end_at,
            {as_of_sql("lasted", "delivered_at")} as as_of_at,
            {skip} as skip_reason,
            {reason} as bad_reason
        from picked
    """
