"""Slurm: dumps of sacct, `sacctmgr show event` and `scontrol show reservation`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Feed, Reading
from orchestration.connectors.scheduler.notation import node_names, parse_tres
from orchestration.connectors.scheduler.slurm_reservations import read_reservations
from orchestration.connectors.scheduler.slurm_time import candidates_sql, pick_sql, picked
from orchestration.connectors.sql import (
    backwards,
    first_reason,
    literal,
    map_distinct,
    minutes_ms,
    missing,
    quoted,
    whole,
)
from orchestration.connectors.text import load_lines, select_fields
from orchestration.errors import ApportionError
from orchestration.settings import SlurmSource

JOB_COLUMNS = ("JobIDRaw", "State", "Start", "End", "AllocTRES", "NodeList")
MORE_JOB_COLUMNS = (
    "JobID",
    "JobName",
    "User",
    "Account",
    "Partition",
    "QOS",
    "Submit",
    "ElapsedRaw",
    "Suspended",
    "Timelimit",
    "TimelimitRaw",
    "ExitCode",
    "Comment",
)
EVENT_COLUMNS = ("NodeName", "TimeStart", "TimeEnd", "State")
MORE_EVENT_COLUMNS = ("Duration", "Reason")
EVENT_ALIASES = {"Start": "TimeStart", "End": "TimeEnd", "Node Name": "NodeName"}
ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
)


def feeds(source: SlurmSource) -> list[Feed]:
    def bound(read: Callable[..., Reading]) -> Callable[[DuckDBPyConnection, Sequence[Delivery]], Reading]:
        return lambda con, deliveries: read(con, deliveries, source)

    found = [Feed("jobs", source.jobs, bound(_read_jobs))]
    if source.events:
        found.append(Feed("node_events", source.events, bound(_read_events)))
    if source.reservations:
        found.append(Feed("reservations", source.reservations, bound(read_reservations)))
    return found


def _clock_seconds(column: str) -> str:
    """`1-02:03:04`, `03:04` or plain seconds, as SQL."""
    pattern = r"'(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?'"
    parts = [
        f"coalesce(try_cast(regexp_extract({column}, {pattern}, {group}) as bigint), 0) * {seconds}"
        for group, seconds in ((1, 86_400), (2, 3_600), (3, 60), (4, 1))
    ]
    return (
        f"case when regexp_full_match({column}, '\\d+') then try_cast({column} as bigint)"
        f" when regexp_full_match({column}, {pattern}) then {' + '.join(parts)} end"
    )


def _time_limit_ms() -> str:
    """The limit that was asked for, as SQL. `UNLIMITED` and `Partition_Limit` are none, and so is what cannot
    be read: a job is charged for what it held, whatever it had asked for."""
    clock = r"'(?:(?:(\d{1,6})-)?(\d{1,6}):)?(\d{1,6}):(\d{1,6})(?:\.\d+)?'"
    seconds = " + ".join(
        f"coalesce(try_cast(regexp_extract(f.Timelimit, {clock}, {group}) as bigint), 0) * {length}"
        for group, length in ((1, 86_400), (2, 3_600), (3, 60), (4, 1))
    )
    minutes = f"coalesce({minutes_ms('f.Timelimit')}, {minutes_ms('f.TimelimitRaw')})"
    return f"case when regexp_full_match(f.Timelimit, {clock}) then nullif(({seconds}) * 1000, 0) else {minutes} end"


def _labels(column: str) -> str:
    """`run=42 project=foo` as a JSON object; words without `=` are prose, the first of equal keys wins."""
    pairs = f"list_filter(string_split({column}, ' '), lambda w: regexp_full_match(w, '[^=]+=.*'))"
    first = f"list_filter({pairs}, lambda w, i: list_position({_keys(pairs)}, split_part(w, '=', 1)) = i)"
    key, value = (f"cast(to_json({part}) as varchar)" for part in ("split_part(w, '=', 1)", "w[instr(w, '=') + 1:]"))
    entry = f"{key} || ':' || {value}"
    return f"nullif('{{' || array_to_string(list_transform({first}, lambda w: {entry}), ',') || '}}', '{{}}')"


def _keys(pairs: str) -> str:
    return f"list_transform({pairs}, lambda k: split_part(k, '=', 1))"


def _years(con: DuckDBPyConnection, table: str, columns: Sequence[str]) -> tuple[int, int]:
    """The years that local times fall into, so that only those changes of the clock are looked at."""
    texts = " union all ".join(f'select "{column}" as text from {table}' for column in columns)
    low, high = con.execute(
        "select min(year), max(year) from (select cast(text[1:4] as bigint) as year"
        f" from ({texts}) where regexp_full_match(text, '(19|20|21)\\d\\d-.*'))"
    ).fetchall()[0]
    return (low or 2000), (high or 2000)


def _need_zone(
    con: DuckDBPyConnection,
    table: str,
    columns: Sequence[str],
    deliveries: Sequence[Delivery],
    source: SlurmSource,
) -> None:
    if source.timezone is not None:
        return
    for column in columns:
        found = con.execute(
            f"""select file, line, "{column}" from {table} where fields = expected
            and regexp_full_match("{column}", '\\d{{4}}-\\d\\d-\\d\\dT[0-9:.]+')
            order by file, line limit 1"""
        ).fetchall()
        for file, line, text in found:
            raise ApportionError(
                f"{deliveries[file].path}, line {line}: {column} is a local time without a zone: {text}",
                f"add 'timezone: <IANA name>' to source '{source.name}', or dump with SLURM_TIME_FORMAT=%s",
            )


def _read_jobs(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    headers, counts = load_lines(con, "sacct_lines", deliveries, header=True)
    fields = select_fields("sacct_lines", headers, source.delimiter, JOB_COLUMNS, MORE_JOB_COLUMNS, deliveries)
    con.execute(f"create or replace temp table sacct_fields as {fields}")
    con.execute("drop table sacct_lines")
    times = ("Start", "End", "Submit")
    _need_zone(con, "sacct_fields", times, deliveries, source)
    jobs = "from sacct_fields where fields = expected and not contains(JobIDRaw, '.')"
    map_distinct(
        con,
        "sacct_tres",
        f"select distinct AllocTRES {jobs} and AllocTRES is not null",
        [("gpu_units", pa.int64()), ("cpu_millicores", pa.int64()), ("memory_mib", pa.int64())],
        parse_tres,
    )
    map_distinct(
        con,
        "sacct_nodes",
        f"select distinct NodeList {jobs} and NodeList is not null",
        [("names", pa.string())],
        node_names,
    )
    years = _years(con, "sacct_fields", times)
    con.execute(f"create or replace temp table sacct_jobs as {_select_jobs(source, years)}")
    con.execute("drop table sacct_fields")
    ambiguous = con.execute(
        "select count(*) from sacct_jobs where has_two_meanings and bad_reason is null and skip_reason is null"
    ).fetchall()[0][0]
    notes = {"ambiguous_local_times": ambiguous} if ambiguous else {}
    return Reading("from sacct_jobs", counts, notes=notes)


def _select_jobs(source: SlurmSource, years: tuple[int, int]) -> str:
    start, end, submit = (
        candidates_sql(column, source.timezone, *years) for column in ("f.Start", "f.End", "f.Submit")
    )
    cluster = literal(source.cluster)
    skip = first_reason(
        ("fields <> expected", "null"),
        ("contains(JobIDRaw, '.')", literal("a step of a job")),
        ("starts is null or state = 'PENDING'", literal("not started")),
    )
    reason = first_reason(
        ("fields <> expected", "'has ' || fields || ' fields instead of ' || expected"),
        ("skip_reason is not null", "null"),
        missing("JobIDRaw", "JobIDRaw"),
        ("not regexp_full_match(JobIDRaw, '[0-9]+')", "'JobIDRaw is not a job: ' || JobIDRaw"),
        ("state = ''", literal("State is missing")),
        ("len(starts) = 0", "'Start is not a time: ' || Start"),
        ("len(ends) = 0", "'End is not a time: ' || \"End\""),
        ("len(submits) = 0", "'Submit is not a time: ' || Submit"),
        ("ElapsedRaw is not null and elapsed is null", "'ElapsedRaw is not a number: ' || ElapsedRaw"),
        (
            "Suspended is not null and suspended_seconds is null",
            "'Suspended is not a duration: ' || Suspended",
        ),
        (f"ends is null and state in ({quoted(ENDED)})", literal("finished, but without an end")),
        backwards("start_at", "end_at"),
        ("tres_reason is not null", "tres_reason"),
        ("nodes_reason is not null", "nodes_reason"),
    )
    return f"""
        with timed as (
            select
                f.*,
                {start} as starts,
                {end} as ends,
                {submit} as submits,
                {whole("f.ElapsedRaw")} as elapsed,
                {_clock_seconds("f.Suspended")} as suspended_seconds,
                {_time_limit_ms()} as time_limit_ms,
                regexp_extract(f.Comment, '(?:^| )checkpoint_minutes=([^ ]*)', 1) as checkpoint,
                regexp_extract(f.State, '^[A-Z_]+') as state_word,
                t.gpu_units, t.cpu_millicores, t.memory_mib,
                t.reason as tres_reason,
                n.names, n.reason as nodes_reason,
                d.delivered_at
            from sacct_fields as f
            join deliveries as d using (file)
            left join sacct_tres as t on t.text = f.AllocTRES
            left join sacct_nodes as n on n.text = f.NodeList
        ),

        picked as (
            select * exclude (state), state_word as state,
                {pick_sql("(elapsed + coalesce(suspended_seconds, 0))", "delivered_at")} as pick
            from timed
        )

        select
            file,
            line,
            {picked("starts", 1)} as start_at,
            {picked("ends", 2)} as end_at,
            {cluster} as cluster_id,
            'slurm' as scheduler,
            {cluster} || ':' || JobIDRaw || ':' || cast(epoch(start_at) as bigint) as job_key,
            coalesce(JobID, JobIDRaw) as job_id,
            JobIDRaw as part_id,
            nullif(regexp_extract(JobID, '^(\\d+)_\\d+$', 1), '') as array_job_id,
            "User" as user_name,
            Account as account,
            cast(null as varchar) as namespace,
            "Partition" as partition,
            QOS as qos,
            JobName as job_name,
            {_labels("Comment")} as labels,
            state,
            ExitCode as exit_code,
            submits[1] as submit_at,
            case when end_at is null then greatest(delivered_at, start_at) end as as_of_at,
            coalesce(suspended_seconds, 0) * 1000 as suspended_ms,
            time_limit_ms,
            {minutes_ms("checkpoint")} as checkpoint_interval_ms,
            names as node_names,
            gpu_units,
            cpu_millicores,
            memory_mib,
            cast(null as bigint) as measured_cpu_millicores,
            cast(null as bigint) as measured_memory_mib,
            cast(null as bigint) as bytes_out,
            len(starts) > 1 or len(ends) > 1 as has_two_meanings,
            {skip} as skip_reason,
            {reason} as bad_reason
        from picked
    """


def _read_events(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    headers, counts = load_lines(con, "event_lines", deliveries, header=True)
    headers = [
        source.delimiter.join(EVENT_ALIASES.get(name, name) for name in header.split(source.delimiter))
        for header in headers
    ]
    fields = select_fields("event_lines", headers, source.delimiter, EVENT_COLUMNS, MORE_EVENT_COLUMNS, deliveries)
    con.execute(f"create or replace temp table event_fields as {fields}")
    times = ("TimeStart", "TimeEnd")
    _need_zone(con, "event_fields", times, deliveries, source)
    map_distinct(
        con,
        "event_nodes",
        "select distinct NodeName from event_fields where fields = expected and NodeName is not null",
        [("names", pa.string())],
        node_names,
    )
    years = _years(con, "event_fields", times)
    con.execute(f"create or replace temp table node_event_rows as {_select_events(source, years)}")
    return Reading("from node_event_rows", counts)


def _select_events(source: SlurmSource, years: tuple[int, int]) -> str:
    start, end = (candidates_sql(column, source.timezone, *years) for column in ("f.TimeStart", "f.TimeEnd"))
    skip = first_reason(("fields <> expected", "null"), ("NodeName is null", literal("about the cluster, not a node")))
    reason = first_reason(
        ("fields <> expected", "'has ' || fields || ' fields instead of ' || expected"),
        ("skip_reason is not null", "null"),
        ("starts is null", literal("TimeStart is missing")),
        ("len(starts) = 0", "'TimeStart is not a time: ' || TimeStart"),
        ("len(ends) = 0", "'TimeEnd is not a time: ' || TimeEnd"),
        backwards("start_at", "end_at"),
        ("nodes_reason is not null", "nodes_reason"),
    )
    return f"""
        with timed as (
            select f.*, {start} as starts, {end} as ends, {_clock_seconds("f.Duration")} as lasted,
                unnest(coalesce(string_split(n.names, ','), [cast(null as varchar)])) as node_name,
                n.reason as nodes_reason, d.delivered_at
            from event_fields as f
            join deliveries as d using (file)
            left join event_nodes as n on n.text = f.NodeName
        ),

        picked as (select *, {pick_sql("lasted", "delivered_at")} as pick from timed)

        select
            file,
            line,
            {literal(source.cluster)} as cluster_id,
            node_name,
            State as state,
            Reason as reason,
            {picked("starts", 1)} as start_at,
            {picked("ends", 2)} as end_at,
            case when end_at is null then greatest(delivered_at, start_at) end as as_of_at,
            {skip} as skip_reason,
            {reason} as bad_reason
        from picked
    """
