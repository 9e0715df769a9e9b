"""Jobs: what sacct prints, or Slurm says in JSON, as rows of the landing table `jobs`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reading
from orchestration.connectors.scheduler.slurm_json import sacct_columns
from orchestration.connectors.scheduler.slurm_load import LoadedFile, Shape, load_cells
from orchestration.connectors.scheduler.slurm_notation import HELD_COLUMNS, held, node_names
from orchestration.connectors.scheduler.slurm_states import ENDED, job_state
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
from orchestration.connectors.sql import (
    backwards,
    first_reason,
    identifier,
    literal,
    map_distinct,
    minutes_ms,
    missing,
    quoted,
)
from orchestration.settings import SlurmSource

NEEDED = (("JobIDRaw", "JobID"), ("State",), ("Start",), ("End",), ("AllocTRES", "AllocCPUS", "NCPUS", "ReqTRES"))
"""Of each of these, a file needs one: without it nobody knows what a job held, or when."""
COLUMNS = (
    *("JobIDRaw", "JobID", "JobName", "User", "Account", "Cluster", "Partition", "QOS", "State", "Submit", "Start"),
    *("End", "ElapsedRaw", "Elapsed", "Suspended", "Timelimit", "TimelimitRaw", "NodeList", "ExitCode", "Comment"),
    *HELD_COLUMNS,
)
TIMES = ("Start", "End", "Submit")


def read_jobs(con: DuckDBPyConnection, deliveries: Sequence[Delivery], source: SlurmSource) -> Reading:
    asked = Asked("sacct text", ("JobID", "JobIDRaw"), source.delimiter, tuple(source.columns or ()))
    files = load_cells(con, "sacct_cells", deliveries, COLUMNS, asked, Shape("jobs", sacct_columns))
    for delivery, file in zip(deliveries, files, strict=True):
        file.require(delivery, NEEDED)
    need_zone(con, "sacct_cells", TIMES, deliveries, source)
    _find_clusters(con, source)
    _parse_notations(con, source)
    _find_repeated(con)
    rows = _select(source, years_of(con, "sacct_cells", TIMES))
    con.execute(f"create or replace temp table sacct_jobs as {rows}")
    forms = time_forms(con, "sacct_cells", TIMES, source.timezone)
    con.execute("drop table sacct_cells")
    _add_doubts(con, files, source)
    ((ambiguous,),) = con.execute(f"select count(*) from sacct_jobs where has_two_meanings and {_GOOD}").fetchall()
    return Reading(
        "from sacct_jobs",
        [file.count for file in files],
        [reject for file in files for reject in file.rejects],
        found=[file.found(forms.get(place)) for place, file in enumerate(files)],
        notes={"ambiguous_local_times": ambiguous} if ambiguous else {},
    )


def _find_clusters(con: DuckDBPyConnection, source: SlurmSource) -> None:
    """Which cluster each file is about, in the temp table `sacct_clusters`: job ids repeat from cluster to cluster.

    That is the one that the source names, or else the one with the most jobs. In a dump of several clusters the jobs of
    others are skipped if the source names one of them, and bad if nobody says which one is meant.
    """
    con.execute(
        f"""
        create or replace temp table sacct_clusters as
        select
            file,
            bool_or(Cluster = {literal(source.cluster)}) as is_named,
            case when is_named then {literal(source.cluster)} else mode(Cluster) end as own_cluster
        from sacct_cells where {_IS_JOB} group by file
        """
    )


def _parse_notations(con: DuckDBPyConnection, source: SlurmSource) -> None:
    """Amounts, nodes and states: each distinct text once."""
    jobs = f"from sacct_cells where {_IS_JOB}"
    amounts = [("gpu_units", pa.int64()), ("cpu_millicores", pa.int64()), ("memory_mib", pa.int64())]
    parse = partial(held, shards_per_gpu=source.shards_per_gpu)
    map_distinct(con, "sacct_held", f"select distinct {_HELD} {jobs} and {_HELD} is not null", amounts, parse)
    nodes = f"select distinct NodeList {jobs} and NodeList is not null"
    map_distinct(con, "sacct_nodes", nodes, [("names", pa.string())], node_names)
    states = "select distinct State from sacct_cells where State is not null"
    map_distinct(con, "sacct_states", states, [("state", pa.string())], job_state)


_IS_JOB = "not contains(coalesce(JobIDRaw, JobID, ''), '.')"
_ALL_HELD = ", ".join(HELD_COLUMNS)
_HELD = f"""case
    when AllocTRES is not null and AllocGRES is null then cast(to_json([AllocTRES]) as varchar)
    when coalesce({_ALL_HELD}) is not null then cast(to_json([{_ALL_HELD}]) as varchar)
end"""
"""What `held` reads, as SQL: AllocTRES alone where it says everything, because it repeats most."""


def _find_repeated(con: DuckDBPyConnection) -> None:
    """Records that a file has twice, word for word, in the temp table `sacct_repeated` with the first one's line."""
    con.execute(
        f"""
        create or replace temp table sacct_repeated as
        select file, line, min(line) over (partition by file, {", ".join(map(identifier, COLUMNS))}) as original
        from sacct_cells
        where (file, coalesce(JobIDRaw, JobID), Start) in (
            select (file, coalesce(JobIDRaw, JobID), Start) from sacct_cells group by all having count(*) > 1
        )
        qualify line > original
        """
    )


_JOB = "[0-9]+([_+][0-9]+)?"
_GOOD = "bad_reason is null and skip_reason is null"


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
    words = f"regexp_split_to_array({column}, '\\s+')"
    pairs = f"list_filter({words}, lambda w: regexp_full_match(w, '[^=]+=.*'))"
    first = f"list_filter({pairs}, lambda w, i: list_position({_keys(pairs)}, split_part(w, '=', 1)) = i)"
    key, value = (f"cast(to_json({part}) as varchar)" for part in ("split_part(w, '=', 1)", "w[instr(w, '=') + 1:]"))
    entry = f"{key} || ':' || {value}"
    return f"nullif('{{' || array_to_string(list_transform({first}, lambda w: {entry}), ',') || '}}', '{{}}')"


def _keys(pairs: str) -> str:
    return f"list_transform({pairs}, lambda k: split_part(k, '=', 1))"


def _select(source: SlurmSource, years: tuple[int, int]) -> str:
    start, end, submit = (
        candidates_sql(column, source.timezone, *years) for column in ("f.Start", "f.End", "f.Submit")
    )
    cluster = literal(source.cluster)
    return f"""
        with timed as (
            select
                f.*,
                coalesce(f.JobIDRaw, f.JobID) as part_id,
                {start} as starts,
                {end} as ends,
                {submit} as submits,
                coalesce({clock_seconds("f.ElapsedRaw")}, {clock_seconds("f.Elapsed")}) as elapsed_seconds,
                {clock_seconds("f.Suspended")} as suspended_seconds,
                {_time_limit_ms()} as time_limit_ms,
                regexp_extract(f.Comment, '(?:^|\\s)checkpoint_minutes=(\\S*)', 1) as checkpoint,
                s.state as state_name, s.reason as state_reason,
                h.gpu_units, h.cpu_millicores, h.memory_mib, h.reason as held_reason,
                n.names, n.reason as nodes_reason,
                c.is_named, c.own_cluster,
                r.original,
                d.delivered_at
            from (select *, {_HELD} as held from sacct_cells) as f
            join deliveries as d using (file)
            left join sacct_states as s on s.text = f.State
            left join sacct_held as h on h.text = f.held
            left join sacct_nodes as n on n.text = f.NodeList
            left join sacct_clusters as c on c.file = f.file
            left join sacct_repeated as r on r.file = f.file and r.line = f.line
        ),

        picked as (
            select *, {pick_sql("(elapsed_seconds + coalesce(suspended_seconds, 0))", "delivered_at")} as pick
            from timed
        ),

        dated as (
            select
                * exclude (State),
                State as printed_state,
                state_name as state,
                {picked("starts", 1)} as start_at,
                {picked("ends", 2)} as end_at,
                -- While a job is suspended its elapsed time stands still, and says nothing of the time of the dump.
                case when state <> 'SUSPENDED' then elapsed_seconds + coalesce(suspended_seconds, 0) end
                    as running_seconds,
                len(starts) > 1 or len(ends) > 1 as has_two_meanings,
                epoch_us(end_at) - epoch_us(start_at) as lasted_us,
                case when not has_two_meanings then lasted_us - elapsed_seconds * 1000000 end as not_elapsed_us,
                -- Elapsed leaves out the time in which a job was suspended, and so says it where nothing else does.
                coalesce(suspended_seconds * 1000, greatest(not_elapsed_us // 1000, 0), 0) as suspended_ms
            from picked
        )

        select
            file,
            line,
            start_at,
            end_at,
            {cluster} as cluster_id,
            'slurm' as scheduler,
            {cluster} || ':' || part_id || ':' || cast(floor(epoch(start_at)) as bigint) as job_key,
            coalesce(JobID, JobIDRaw) as job_id,
            part_id,
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
            {as_of_sql("running_seconds", "delivered_at")} as as_of_at,
            suspended_ms,
            time_limit_ms,
            {minutes_ms("checkpoint")} as checkpoint_interval_ms,
            names as node_names,
            gpu_units,
            cpu_millicores,
            memory_mib,
            cast(null as bigint) as measured_cpu_millicores,
            cast(null as bigint) as measured_memory_mib,
            cast(null as bigint) as bytes_out,
            has_two_meanings,
            suspended_seconds is null and not_elapsed_us >= 1000000 as is_suspension_inferred,
            greatest(start_at, end_at) > delivered_at as is_after_delivery,
            contains(held, 'gres/shard') as has_shards,
            {_skip_reason()} as skip_reason,
            {_bad_reason()} as bad_reason
        from dated
    """


def _skip_reason() -> str:
    return first_reason(
        ("contains(part_id, '.')", literal("a step of a job")),
        ("is_named and Cluster <> own_cluster", "'a job of cluster ' || Cluster"),
        ("original is not null", "'repeats line ' || original"),
        ("starts is null or state = 'PENDING'", literal("not started")),
    )


def _bad_reason() -> str:
    return first_reason(
        ("skip_reason is not null", "null"),
        missing("part_id", "JobIDRaw"),
        (
            "Cluster <> own_cluster",
            "'of cluster ' || Cluster || ' in a file of ' || own_cluster || '; the source names neither'",
        ),
        (f"not regexp_full_match(part_id, '{_JOB}')", "'JobIDRaw is not a job: ' || part_id"),
        (f"not regexp_full_match(JobID, '{_JOB}')", "'JobID is not a job: ' || JobID"),
        missing("printed_state", "State"),
        ("state_reason is not null", "state_reason"),
        ("len(starts) = 0", "'Start is not a time: ' || Start"),
        ("len(ends) = 0", "'End is not a time: ' || \"End\""),
        ("len(submits) = 0", "'Submit is not a time: ' || Submit"),
        ("ElapsedRaw is not null and elapsed_seconds is null", "'ElapsedRaw is not a number: ' || ElapsedRaw"),
        ("Elapsed is not null and elapsed_seconds is null", "'Elapsed is not a duration: ' || Elapsed"),
        ("Suspended is not null and suspended_seconds is null", "'Suspended is not a duration: ' || Suspended"),
        (f"ends is null and state in ({quoted(ENDED)})", literal("finished, but without an end")),
        backwards("start_at", "end_at"),
        (
            "abs(not_elapsed_us - suspended_ms * 1000) >= 1000000",
            "'lasts ' || lasted_us // 1000000 || ' s from Start to End, but '"
            " || (elapsed_seconds + suspended_ms // 1000) || ' s elapsed or suspended'",
        ),
        ("held_reason is not null", "held_reason"),
        ("nodes_reason is not null", "nodes_reason"),
    )


def _add_doubts(con: DuckDBPyConnection, files: Sequence[LoadedFile], source: SlurmSource) -> None:
    """What was read, but might be meant otherwise, file by file."""
    for file in files:
        if not file.has("JobIDRaw"):
            file.doubts.append(
                "JobIDRaw is not printed, so array tasks and parts of heterogeneous jobs go by JobID: do not mix with"
                " files that have it"
            )
        if not file.has("NodeList"):
            file.doubts.append("NodeList is not printed, so nobody knows which nodes the jobs held")
        if not file.has("AllocTRES"):
            file.doubts.append("AllocTRES is not printed; amounts come from the columns that there are")
    counts = con.execute(
        f"""
        select
            file,
            count(*) filter (has_two_meanings),
            count(*) filter (is_after_delivery),
            count(*) filter (is_suspension_inferred),
            count(*) filter (has_shards),
            count(*) filter (gpu_units is null)
        from sacct_jobs where {_GOOD} group by file
        """
    ).fetchall()
    for place, *numbers in counts:
        for number, doubt in zip(numbers, _COUNTED_DOUBTS, strict=True):
            if number and not (doubt is _SHARDS and source.shards_per_gpu):
                files[place].doubts.append(f"{number} {doubt}")


_SHARDS = "jobs held shards of GPUs, which count as no GPU until the source says 'shards_per_gpu'"
_COUNTED_DOUBTS = (
    "jobs began or ended in an hour that the clock showed twice; Elapsed tells which, or else it is the first",
    "jobs began or ended after the file was delivered: is the time zone right?",
    "jobs lasted longer than Elapsed says; as Suspended is not printed, the rest is taken for suspended time",
    _SHARDS,
    "jobs do not say whether they held GPUs, which counts as none",
)
