"""Slurm dumps as clusters really print them, with everything that goes wrong in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.connectors.scheduler.slurm_notation import expand_nodes, parse_tres
from orchestration.errors import ApportionError

HEADER = (
    "JobIDRaw|JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|Suspended|AllocTRES|"
    "NodeList|ExitCode|Comment"
)
TRES = "billing=42,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=62.50G,node=1"


def job(
    raw: str,
    start: str,
    end: str,
    *,
    job_id: str = "",
    state: str = "COMPLETED",
    elapsed: str = "",
    suspended: str = "00:00:00",
    tres: str = TRES,
    nodes: str = "n1",
    name: str = "train",
    comment: str = "",
) -> str:
    return (
        f"{raw}|{job_id or raw}|{name}|ann|nlp|gpu|normal|{state}|{start}|{start}|{end}|{elapsed}|"
        f"{suspended}|{tres}|{nodes}|0:0|{comment}"
    )


def dump(*lines: str) -> str:
    return "\n".join([HEADER, *lines]) + "\n"


def slurm(workspace, **more):
    pattern = "{data}/inbox/sacct_*"
    defaults = {"area": "scheduler", "kind": "slurm", "cluster": "c", "jobs": pattern, "max_bad_share": 1.0}
    return workspace.source(**{**defaults, **more})


def test_every_kind_of_record_is_a_job_a_skipped_row_or_a_quarantined_one(workspace):
    workspace.deliver(
        "sacct_2026-01-05_20260106T001500Z.psv",
        dump(
            job("1", "1767578400", "1767582000", comment="run=42 plain run=43 a.b=x=y"),
            job("1.batch", "1767578400", "1767582000"),
            job("1.extern", "1767578400", "1767582000"),
            job("2", "1767578400", "1767578460", state="NODE_FAIL"),
            job("2", "1767578700", "1767578760", state="PREEMPTED"),  # the same job, requeued twice
            job("2", "1767579000", "Unknown", state="RUNNING"),
            job("5", "1767578400", "1767578460", job_id="3_4"),
            job("6", "Unknown", "Unknown", job_id="3_[5-9]", state="PENDING", tres="", nodes="None assigned"),
            job("8", "1767578400", "1767578460", job_id="7+1"),
            job("9", "1767578400", "1767578460", state="CANCELLED by 61000"),
            job("10", "None", "1767578460", state="CANCELLED by 61000", tres="", nodes="None assigned"),
            job("11", "1767578400", "1767578460", name="left|right"),
            "12|12|cut-off|ann|nlp|gpu",
            job("13", "1767578400", "1767578460", elapsed="a minute"),
            job("14", "1767578400", "Unknown"),
            job("15", "1767582000", "1767578400"),
            job("16", "1767578400", "1767578460", tres="cpu=many"),
            job("17", "1767578400", "1767578460", nodes="n[1-"),
            job("18", "later", "1767578460"),
            "",
            job("19", "1767578400", "1767578400", suspended="1-00:00:01"),
        ),
    )
    report = workspace.land(slurm(workspace), "2026-01-05", "2026-01-06")
    jobs = report.tables["jobs"]
    assert (jobs.read, jobs.landed, jobs.skipped, jobs.quarantined) == (20, 9, 4, 7)
    assert workspace.query("select job_key, job_id, array_job_id, state, labels from {jobs} order by line") == [
        ("c:1:1767578400", "1", None, "COMPLETED", '{"run":"42","a.b":"x=y"}'),
        ("c:2:1767578400", "2", None, "NODE_FAIL", None),
        ("c:2:1767578700", "2", None, "PREEMPTED", None),
        ("c:2:1767579000", "2", None, "RUNNING", None),
        ("c:5:1767578400", "3_4", "3", "COMPLETED", None),
        ("c:8:1767578400", "7+1", None, "COMPLETED", None),
        ("c:9:1767578400", "9", None, "CANCELLED", None),
        ("c:11:1767578400", "11", None, "COMPLETED", None),
        ("c:19:1767578400", "19", None, "COMPLETED", None),
    ]
    assert workspace.quarantined() == [
        (14, "has 6 fields instead of 17"),
        (15, "ElapsedRaw is not a number: a minute"),
        (16, "finished, but without an end"),
        (17, "ends before it starts"),
        (18, "AllocTRES with a bad number: many"),
        (19, "node list with an open bracket: n[1-"),
        (20, "Start is not a time: later"),
    ]
    ((end_at, as_of, gpu, cpu, mib),) = workspace.query(
        "select end_at, strftime(as_of_at, '%Y-%m-%dT%H:%M:%S'), gpu_units, cpu_millicores, memory_mib"
        " from {jobs} where state = 'RUNNING'"
    )
    assert (end_at, as_of, gpu, cpu, mib) == (None, "2026-01-06T00:15:00", 4 * 25200, 16000, 64000)
    assert workspace.query("select suspended_ms from {jobs} where part_id = '19'") == [(86_401_000,)]


def test_an_ambiguous_local_hour_takes_the_fold_that_fits_the_elapsed_time(workspace):
    # On 2026-10-25 the clock in Zurich shows 02:00 to 03:00 twice, from 00:00 UTC and from 01:00 UTC.
    local = "2026-10-25T{}".format
    workspace.deliver(
        "sacct_2026-10-25_20261026T001500Z.psv",
        dump(
            job("1", local("01:30:00"), local("02:30:00"), elapsed="3600"),
            job("2", local("01:30:00"), local("02:30:00"), elapsed="7200"),
            job("3", local("02:30:00"), local("03:30:00"), elapsed="7200"),
            job("4", local("02:30:00"), local("03:30:00"), elapsed="3000", suspended="00:10:00"),
            job("5", local("02:50:00"), local("02:10:00"), elapsed="1200"),
            job("6", local("02:10:00"), local("02:20:00"), elapsed="600"),
            job("7", local("02:10:00"), local("02:20:00"), elapsed="1"),
            job("8", local("02:30:00"), "Unknown", elapsed="81900", state="RUNNING"),
            job("9", local("02:30:00"), "Unknown", elapsed="85500", state="RUNNING"),
            job("10", local("12:00:00"), local("13:00:00"), elapsed="3600"),
        ),
    )
    report = workspace.land(slurm(workspace, timezone="Europe/Zurich"), "2026-10-25", "2026-10-26")
    times = workspace.query("select strftime(start_at, '%H:%M'), strftime(end_at, '%H:%M') from {jobs} order by line")
    assert times == [
        ("23:30", "00:30"),
        ("23:30", "01:30"),
        ("00:30", "02:30"),
        ("01:30", "02:30"),
        ("00:50", "01:10"),
        ("00:10", "00:20"),
        ("00:10", "00:20"),  # fits neither: the first
        ("01:30", None),
        ("00:30", None),
        ("11:00", "12:00"),
    ]
    assert report.metadata()["ambiguous_local_times"] == 9


def test_a_time_in_the_gap_of_spring_is_read_with_the_offset_before_it(workspace):
    workspace.deliver(
        "sacct_2026-03-29_20260330T001500Z.psv",
        dump(job("1", "2026-03-29T02:30:00", "2026-03-29T03:30:00", elapsed="0")),
    )
    workspace.land(slurm(workspace, timezone="Europe/Zurich"), "2026-03-29", "2026-03-30")
    assert workspace.query("select epoch(end_at) - epoch(start_at) from {jobs}") == [(0.0,)]


def test_local_times_without_a_zone_are_refused_with_the_remedy(workspace):
    workspace.deliver("sacct_2026-01-05.psv", dump(job("1", "2026-01-05T01:00:00", "2026-01-05T02:00:00")))
    with pytest.raises(ApportionError, match="line 2: Start is a local time without a zone") as error:
        workspace.land(slurm(workspace), "2026-01-05", "2026-01-06")
    assert "add 'timezone: <IANA name>' to source 'src'" in error.value.remedy


def test_dumps_may_differ_in_their_columns_and_delimiter(workspace):
    workspace.deliver(
        "sacct_2026-01-05_a.psv",
        "State\x1fEnd\x1fStart\x1fAllocTRES\x1fNodeList\x1fJobIDRaw\n"
        "COMPLETED\x1f1767582000\x1f1767578400\x1fcpu=1\x1fa|b\x1f1\n",
    )
    workspace.deliver("sacct_2026-01-05_b.psv", dump(job("2", "1767578400", "1767582000")).replace("|", "\x1f"))
    workspace.land(slurm(workspace, delimiter="\x1f"), "2026-01-05", "2026-01-06")
    assert workspace.query("select part_id, user_name, gpu_units, node_names from {jobs} order by 1") == [
        ("1", None, 0, "a|b"),
        ("2", "ann", 100800, "n1"),
    ]


@pytest.mark.parametrize(
    ("limit", "raw", "hours"),
    [
        ("2-12:00:00", "", 60),
        ("06:30:00", "", 6.5),
        ("90:00", "", 1.5),  # minutes and seconds
        ("120", "", 2),
        ("", "45", 0.75),
        ("12:00:00", "720", 12),
        ("UNLIMITED", "UNLIMITED", None),
        ("Partition_Limit", "Partition_Limit", None),
        ("00:00:00", "", None),
        ("1-12", "", None),  # sbatch takes this, sacct never prints it
        ("soon", "-5", None),
        ("", "", None),
    ],
)
def test_the_time_limit_is_read_in_every_notation_and_never_costs_a_job(workspace, limit, raw, hours):
    header = "JobIDRaw|State|Start|End|AllocTRES|NodeList|Timelimit|TimelimitRaw"
    line = f"1|COMPLETED|1767578400|1767582000|cpu=1|n1|{limit}|{raw}"
    workspace.deliver("sacct_2026-01-05.psv", f"{header}\n{line}\n")
    workspace.land(slurm(workspace), "2026-01-05", "2026-01-06")
    assert workspace.query("select time_limit_ms / 3600000 from {jobs}") == [(hours,)]


def test_the_comment_says_how_often_a_job_saves_its_work(workspace):
    comments = {
        "run=4 checkpoint_minutes=30": 1_800_000,
        "checkpoint_minutes=2.5 checkpoint_minutes=9": 150_000,
        "checkpoint_minutes=0": None,
        "checkpoint_minutes=-10": None,
        "checkpoint_minutes=hourly run=4": None,
        "checkpoint_minutes=": None,
        "no_checkpoint_minutes=5": None,
        "": None,
    }
    lines = [job(str(n), "1767578400", "1767582000", comment=text) for n, text in enumerate(comments, start=1)]
    workspace.deliver("sacct_2026-01-05.psv", dump(*lines))
    report = workspace.land(slurm(workspace), "2026-01-05", "2026-01-06")
    assert report.quarantined == 0
    found = workspace.query("select checkpoint_interval_ms from {jobs} order by line")
    assert [interval for (interval,) in found] == list(comments.values())


def test_a_dump_without_a_needed_column_names_it(workspace):
    workspace.deliver("sacct_2026-01-05.psv", "JobIDRaw|State|Start|End|NodeList\n")
    with pytest.raises(ApportionError, match="missing column AllocTRES"):
        workspace.land(slurm(workspace), "2026-01-05", "2026-01-06")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gres/gpu:a100=1,gres/gpu=1", (25200, None, None)),
        ("gres/gpu:a100=2,gres/gpu:h100=1,cpu=3", (75600, 3000, None)),
        ("gres/gpu:1g.10gb=2,gres/gpu=2,mem=1000", (7200, None, 1000)),
        ("gres/gpu:1g.10gb=1,gres/gpu:a100=1,gres/gpu=2", (28800, None, None)),
        ("cpu=16,mem=62.50G,node=1", (0, 16000, 64000)),
        ("mem=1536K", (0, None, 2)),
        ("mem=1.5T", (0, None, 1572864)),
    ],
)
def test_allocated_resources_are_read_exactly(text, expected):
    assert parse_tres(text) == expected


def test_node_lists_with_several_bracket_groups_are_expanded():
    assert expand_nodes("gpu[001-003,7],x,a[1-2]b[08-09]") == [
        *("gpu001", "gpu002", "gpu003", "gpu7", "x"),
        *("a1b08", "a1b09", "a2b08", "a2b09"),
    ]
    assert expand_nodes("None assigned") == []


def test_node_events_are_expanded_and_cluster_rows_skipped(workspace):
    header = "Cluster|Cluster Nodes|NodeName|TimeStart|TimeEnd|Duration|State|StateRaw|Reason|User|TRES"
    workspace.deliver("sacct_2026-01-05.psv", dump())
    workspace.deliver(
        "events_2026-01-05_20260106T001500Z.psv",
        f"{header}\n"
        "c|n[1-2]||2025-10-07T00:00:00|Unknown|90-00:00:00||0|Cluster Registered TRES||cpu=1\n"
        "c||n[1-2]|2026-01-05T08:00:00|Unknown|1-00:00:00|DRAIN|514|nvlink flap|root(0)|cpu=1\n"
        "c||n2|2026-01-04T20:00:00|2026-01-05T00:00:00|04:00:00|DOWN|1|ends at midnight in UTC?|root(0)|\n"
        "c||n3|yesterday|Unknown|00:00:00|DOWN|1|clock|root(0)|\n",
    )
    source = slurm(workspace, events="{data}/inbox/events_*.psv", timezone="Europe/Zurich")
    report = workspace.land(source, "2026-01-04", "2026-01-07")
    assert (report.tables["node_events"].skipped, report.quarantined) == (1, 1)
    assert workspace.query(
        "select date::varchar, node_name, strftime(start_at, '%dT%H:%M'), strftime(as_of_at, '%dT%H:%M')"
        " from {node_events} order by 1, 2, 3"
    ) == [
        ("2026-01-04", "n2", "04T19:00", None),
        ("2026-01-05", "n1", "05T07:00", "06T00:15"),
        ("2026-01-05", "n2", "05T07:00", "06T00:15"),
        ("2026-01-06", "n1", "05T07:00", "06T00:15"),
        ("2026-01-06", "n2", "05T07:00", "06T00:15"),
    ]


def test_reservations_of_somebody_are_landed_in_both_printed_forms(workspace):
    workspace.deliver("sacct_2026-01-05.psv", dump())
    block = (
        "ReservationName={name} StartTime=2026-01-05T08:00:00 EndTime={end} Duration=01:00:00{sep}"
        "Nodes=n[1-2],x NodeCnt=3 Features=(null) PartitionName=(null) Flags=SPEC_NODES{sep}"
        "TRES=cpu=64{sep}Users={users} Groups=(null) Accounts={accounts} Licenses=(null){sep}"
        "MaxStartDelay=(null)"
    )
    entries = [
        block.format(name="paper", end="2026-01-05T09:00:00", users="(null)", accounts="nlp,vision", sep="\n   "),
        block.format(name="maint", end="2026-01-05T09:00:00", users="root", accounts="(null)", sep="\n   "),
        block.format(name="demo", end="2026-01-06T09:00:00", users="root,ann", accounts="(null)", sep=" "),
        block.format(name="typo", end="soon", users="ann", accounts="(null)", sep=" "),
    ]
    workspace.deliver("res_2026-01-05_20260106T001500Z.txt", "\n\n".join(entries))
    source = slurm(workspace, reservations="{data}/inbox/res_*.txt", timezone="Europe/Zurich")
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert workspace.query("select reservation_name, node_names, accounts, users from {reservations} order by 1") == [
        ("demo", "n1,n2,x", None, "ann"),
        ("paper", "n1,n2,x", "nlp,vision", None),
    ]
    assert (report.tables["reservations"].skipped, report.quarantined) == (1, 1)


def test_a_real_dump_in_local_time_and_in_epoch_seconds_gives_the_same_gpu_time(workspace, shared: Path):
    gpu_seconds = "sum(gpu_units * (epoch_ms(coalesce(end_at, as_of_at)) - epoch_ms(start_at))) / 25200000"
    found = {}
    for name, delimiter in (("sacct-cols-local.psv", "|"), ("sacct-cols-epoch-us.txt", "\x1f")):
        path = str(shared / "slurm_live" / name)
        report = workspace.land(
            slurm(workspace, jobs=path, delimiter=delimiter, timezone="UTC"), "2026-11-16", "2026-11-17"
        )
        (found[name],) = workspace.query(f"select {gpu_seconds}, max(gpu_units) from {{jobs}} where end_at is not null")
        assert report.tables["jobs"].read == 92
    assert found["sacct-cols-local.psv"] == found["sacct-cols-epoch-us.txt"]
    # The one job with the delimiter in its name cannot be read in the first dump, and is there in the second.
    assert report.quarantined == 0
