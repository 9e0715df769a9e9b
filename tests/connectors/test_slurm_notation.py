"""Slurm's notations one by one: amounts, memory, states, times, and what a dump's first lines tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration.connectors.scheduler.slurm_notation import HELD_COLUMNS, expand_nodes, held, parse_tres
from orchestration.connectors.scheduler.slurm_states import is_available, job_state
from orchestration.errors import ApportionError
from tests.connectors.slurm_reading import Outcome, read

GPU = 25_200


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gres/gpu:a100=2,gres/gpu=2", 2),
        ("gres/gpu:a100_1g.5gb=7,gres/gpu=7", 1),
        ("gres/gpu:1g.10gb=1", 1 / 7),
        ("gres/gpu:nvidia_a100_3g.39gb=1,gres/gpu=1", 3 / 7),
        ("gres/gpu:nvidia_h100_80gb_hbm3_2g.20gb=1,gres/gpu:h100=1,gres/gpu=2", 1 + 2 / 7),
        ("gres/gpu:a100_1c.3g.20gb=3,gres/gpu=3", 3 / 7),
        ("gres/gpu:a30_2g.12gb=1,gres/gpu=1", 1 / 2),
        ("gres/shard=3", 0),
        ("gres/mps=50", 0.5),
        ("gres/mps:a100=25,gres/mps=25,gres/gpu=1", 1.25),
        ("billing=500,cpu=1,gres/craynetwork=4,license/matlab=2", 0),
    ],
)
def test_gpus_are_counted_once_and_in_parts(text: str, gpus: float) -> None:
    assert parse_tres(text)[0] == round(gpus * GPU)


def test_shards_count_once_the_source_says_how_many_a_gpu_has() -> None:
    assert parse_tres("gres/shard:a100=3,gres/shard=3", 4)[0] == 3 * GPU // 4


@pytest.mark.parametrize(
    "text",
    [
        *("gres/gpu:1g.5gb=3,gres/gpu=1", "cpu", "cpu=-1", "mem=4X", "gres/gpu=many"),
        *(f"cpu={10**20}", f"gres/gpu={10**18}", "mem=20000000E"),
    ],
)
def test_amounts_that_contradict_themselves_or_cannot_be_are_bad(text: str) -> None:
    with pytest.raises(ValueError, match=r"AllocTRES|that no cluster has"):
        parse_tres(text)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"AllocTRES": "cpu=2,mem=1P"}, (0, 2000, 1024**3)),
        ({"AllocTRES": "cpu=2,mem=1G", "AllocGRES": "gpu:8"}, (8 * GPU, 2000, 1024)),
        ({"AllocTRES": "cpu=2,gres/gpu=1", "AllocGRES": "gpu:8"}, (GPU, 2000, None)),
        ({"AllocCPUS": "16", "AllocGRES": "gpu:a100:4", "ReqMem": "4Gn", "NNodes": "2"}, (4 * GPU, 16000, 8192)),
        ({"NCPUS": "16", "ReqGRES": "PER_NODE:gpu:8", "ReqMem": "500Mc", "NNodes": "4"}, (32 * GPU, 16000, 8000)),
        ({"NCPUS": "16", "ReqGRES": "PER_NODE:gpu:8", "ReqMem": "500Mn"}, (None, 16000, None)),
        ({"NCPUS": "1", "ReqGRES": "gpu"}, (GPU, 1000, None)),
        ({"NCPUS": "8", "ReqMem": "2147486648Mn"}, (None, 8000, 24000)),
        ({"NCPUS": "8", "ReqMem": "9223372036854778808"}, (None, 8000, 24000)),
        ({"NCPUS": "8", "ReqMem": "2.00Pn"}, (None, 8000, None)),
        ({"NCPUS": "8", "ReqMem": "0n"}, (None, 8000, None)),
        ({"NCPUS": "8", "ReqMem": "?"}, (None, 8000, None)),
        ({"NCPUS": "8", "ReqMem": "1536K"}, (None, 8000, 2)),
        ({"AllocCPUS": "1.50K", "AllocGRES": "gpu:2K"}, (2048 * GPU, 1_536_000, None)),
        ({"NCPUS": "8", "ReqTRES": "cpu=4,gres/gpu=2,mem=62.50G"}, (2 * GPU, 8000, 64000)),
    ],
)
def test_what_a_job_held_comes_from_the_columns_that_there_are(cells: dict[str, str], expected: tuple) -> None:
    assert held(json.dumps([cells.get(name) for name in HELD_COLUMNS])) == expected


def test_node_lists_that_no_cluster_has_are_refused() -> None:
    for text in ("n[5-3]", "n[0-99999][0-99999]", "n[1-", "n[a]"):
        with pytest.raises(ValueError, match="node list"):
            expand_nodes(text)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        *(("CANCELLED by 1000", "CANCELLED"), ("CA", "CANCELLED"), ("CD", "COMPLETED"), ("F", "FAILED")),
        *(("OOM", "OUT_OF_MEMORY"), ("OUT_OF_ME+", "OUT_OF_MEMORY"), ("COMPLETED+", "COMPLETED"), ("R", "RUNNING")),
        *(("CANCELLED+", "CANCELLED"), ("TO", "TIMEOUT"), ("completed", "COMPLETED"), ("BRAND_NEW", "BRAND_NEW")),
    ],
)
def test_a_job_state_has_one_name(text: str, state: str) -> None:
    assert job_state(text) == (state,)


def test_nodes_take_jobs_or_do_not() -> None:
    down = ("DOWN", "DOWN*", "DRAIN", "DRAINING", "DRAINED", "IDLE+DRAIN", "MIXED+DRAIN", "MAINT", "FAIL", "FAILING")
    down += ("IDLE*", "ALLOCATED$", "DOWN+POWERED_DOWN", "UNKNOWN", "REBOOT^", "DOWN~", "INVAL", "idle+maint")
    up = ("IDLE", "ALLOCATED", "MIXED", "MIXED-", "IDLE~", "IDLE+POWERED_DOWN", "PLANNED", "COMPLETING")
    assert [is_available(text) for text in down] == [(False,)] * len(down)
    assert [is_available(text) for text in up] == [(True,)] * len(up)


# --- files -------------------------------------------------------------------------------------------------

HEADER = "JobIDRaw|JobID|State|Start|End|ElapsedRaw|AllocTRES|NodeList|JobName"


def dump(tmp_path: Path, *lines: str, header: str = HEADER, **settings: Any) -> Outcome:
    path = tmp_path / "sacct_20260301T000000Z.psv"
    path.write_text("\n".join([header, *lines, ""]))
    return read(path, **settings)


def job(raw: str, start: str = "1767578400", end: str = "1767582000", elapsed: str = "3600", **more: str) -> str:
    named = {"job_id": raw, "state": "COMPLETED", "tres": "cpu=1", "nodes": "n1", "name": "x", **more}
    job_id, state, *rest = named.values()
    return "|".join([raw, job_id, state, start, end, elapsed, *rest])


@pytest.mark.parametrize(
    "text", ["16:40", "05/01/2026 08:00:00", "2026-01-05", "Jan 5 08:00", "epoch", "infinity", "5"]
)
def test_times_that_could_be_several_are_bad(tmp_path: Path, text: str) -> None:
    assert dump(tmp_path, job("1", start=text)).bad == [(2, f"Start is not a time: {text}")]


def test_times_that_contradict_elapsed_are_bad(tmp_path: Path) -> None:
    outcome = dump(tmp_path, job("1", elapsed="3599"), job("2", elapsed="3601"), job("3"), job("4", elapsed=""))
    # Suspended is not printed, so less than the time between Start and End can have elapsed, but not more.
    assert outcome.bad == [(3, "lasts 3600 s from Start to End, but 3601 s elapsed or suspended")]
    assert [row["suspended_ms"] for row in outcome.good] == [1000, 0, 0]
    assert "1 jobs lasted longer than Elapsed says" in outcome.found.doubts[0]


def test_durations_of_thousands_of_years_are_bad(tmp_path: Path) -> None:
    lines = [job("1", elapsed="9" * 19), job("2", elapsed="3600.0"), job("3", elapsed="9" * 40)]
    outcome = dump(tmp_path, *lines)
    assert [row["part_id"] for row in outcome.good] == ["2"]
    assert [reason.split(":")[0] for _, reason in outcome.bad] == ["ElapsedRaw is not a number"] * 2


def test_repeated_records_are_skipped_and_other_versions_are_not(tmp_path: Path) -> None:
    outcome = dump(tmp_path, job("1"), job("1"), HEADER, job("1"), job("1", state="FAILED"), job("1.0"), job("1.0"))
    assert outcome.skipped[:2] == [(3, "repeats line 2"), (5, "repeats line 2")]
    assert [(row["line"], row["state"]) for row in outcome.good] == [(2, "COMPLETED"), (6, "FAILED")]


def test_the_later_version_of_a_run_in_one_file_counts(workspace) -> None:
    workspace.deliver("sacct.psv", "\n".join([HEADER, job("1", state="RUNNING"), job("1"), ""]))
    source = workspace.source(area="scheduler", kind="slurm", cluster="c", jobs="{data}/inbox/sacct.psv")
    jobs = workspace.land(source, "2026-01-05", "2026-01-06").tables["jobs"]
    assert (jobs.read, jobs.landed, jobs.superseded) == (2, 1, 1)
    assert workspace.query("select state from {jobs}") == [("COMPLETED",)]


def test_what_is_open_is_known_until_it_was_printed(tmp_path: Path) -> None:
    """Not until the file was delivered, which may be months later; a suspended job has not elapsed until then."""
    open_job = {"start": "1767578400", "end": "Unknown", "state": "RUNNING"}
    lines = [
        f"{job('1', elapsed='600', **open_job)}|00:10:00",
        f"{job('2', elapsed='', **open_job)}|00:10:00",
        f"{job('3', elapsed='0', **open_job)}|00:00:00",
        f"{job('4', elapsed='600', **{**open_job, 'state': 'SUSPENDED'})}|00:10:00",
        f"{job('5', elapsed='9' * 10, **open_job)}|",
    ]
    rows = dump(tmp_path, *lines, header=f"{HEADER}|Suspended").good
    delivered = 1772323200
    assert [int(row["as_of_at"].timestamp()) for row in rows] == [1767578400 + 1200, *[delivered] * 4]
    path = tmp_path / "events_20260301T000000Z"
    path.write_text("NodeName|TimeStart|TimeEnd|Duration|State\nn1|1767578400|Unknown|1-00:00:01|DOWN\n")
    (row,) = read(path, "events").good
    assert int(row["as_of_at"].timestamp()) == 1767578400 + 86401


def test_of_several_clusters_the_one_that_is_meant_is_read(tmp_path: Path) -> None:
    header = f"{HEADER}|Cluster"
    lines = [f"{job('1')}|c", f"{job('2')}|d", f"{job('3')}|d"]
    assert dump(tmp_path, *lines, header=header).skipped == [(3, "a job of cluster d"), (4, "a job of cluster d")]
    outcome = dump(tmp_path, *lines, header=header, cluster="elsewhere")
    assert outcome.bad == [(2, "of cluster c in a file of d; the source names neither")]


def test_doubts_say_what_might_be_meant_otherwise(tmp_path: Path) -> None:
    outcome = dump(
        tmp_path,
        "4_1|COMPLETED|2026-10-25T02:30:00|2026-10-25T02:40:00|gres/shard=1",
        header="JobID|State|Start|End|AllocTRES",
        timezone="Europe/Zurich",
    )
    doubts = " / ".join(outcome.found.doubts)
    for words in ("JobIDRaw is not printed", "NodeList is not printed", "shows twice", "after the file was", "shards"):
        assert words.replace("shows", "showed") in doubts
    assert outcome.found.variant == "sacct text, 5 columns, separated by |, local times read as Europe/Zurich"
    assert [(row["part_id"], row["array_job_id"], row["memory_mib"]) for row in outcome.good] == [("4_1", "4", None)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        (
            "       JobID    JobName\n------------ ----------\n           1          a\n",
            "line 2: columns of fixed width",
        ),
        ("JobID|State|Start|End|AllocTRES\n1|R|1767578400|Unknown|cpu=1\nJobID|State|End\n", "line 3: a second header"),
        ("JobID|State|Start|End|AllocTREQ|NCPUS\n", "no column AllocTREQ; did it say AllocTRES?"),
        ("JobID|State|Start|EndxAllocTRES|NCPUS\n", "no column EndxAllocTRES; did it say End|AllocTRES?"),
        ("sacct: error: slurm_persist_conn_open_without_init: failed\n", "line 1: not the header line of sacct text"),
        ('{"jobs": [{"job_id": 1}', "line 1: not readable as JSON"),
        ('{"nodes": []}', "JSON without a list 'jobs'"),
        ('{"jobs": [\n3]}', "line 2: not readable as JSON: a record that is no object"),
    ],
)
def test_files_that_are_something_else_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "dump"
    path.write_text(content)
    with pytest.raises(ApportionError) as error:
        read(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_odd_bytes_cost_at_most_their_own_record(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    lines = [
        job("1", name="a\x00b"),
        job("2", name="cr\rhere"),
        job("3", elapsed="36\x0000"),
        job("4"),
        "",
        "\x00|\x00",
    ]
    path.write_bytes("\n".join([HEADER, *lines, ""]).encode().replace(b"cr", b"\xff\xfe"))
    outcome = read(path)
    assert [row["part_id"] for row in outcome.good] == ["1", "2", "4"]
    assert [line for line, _ in outcome.bad] == [4, 7]
    assert outcome.good[1]["job_name"] == "\ufffd\ufffd here"


def test_a_json_job_that_cannot_be_read_is_quarantined_alone(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    good = {"job_id": 1, "time": {"start": 1767578400, "end": 1767582000}, "state": {"current": "COMPLETED"}}
    path.write_text(json.dumps({"jobs": [good, {"job_id": 2}, {**good, "job_id": 3, "state": {"current": []}}]}))
    outcome = read(path)
    assert [row["part_id"] for row in outcome.good] == ["1"]
    assert [reason.split(":")[0] for _, reason in outcome.bad] == ["a job that cannot be read", "State is missing"]
