"""What real clusters and real tools printed, compared with calculations that share no code with the connector."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from orchestration.errors import ApportionError
from tests.connectors.slurm_reading import Outcome, held_seconds, read

PHILLIPS = (
    *("JobID", "JobIDRaw", "Cluster", "Partition", "QOS", "Account", "Group", "GID", "User", "UID", "Submit"),
    *("Eligible", "Start", "End", "Elapsed", "ExitCode", "State", "NNodes", "NCPUS", "ReqCPUS", "ReqMem", "ReqTRES"),
    *("AllocTRES", "Timelimit", "NodeList", "JobName"),
)
SONAR = (
    # Steps have an empty third cell and repeat the fourth: only User is empty on steps. Cells 8 to 12, 16 to 18 and 22
    # are empty on every line, so it does not matter what they are called. Cell 13 is a number that is the time since
    # Start, 19 and 20 equal cpu= and mem= of cell 30, 23 is a time before Start that pending jobs have too, and 26 is
    # a number that only jobs have, in minutes of round days.
    *("JobIDRaw", "JobID", "User", "Account", "State", "Start", "End", "e1", "e2", "e3", "e4", "e5", "ElapsedRaw"),
    *(
        "ExitCode",
        "Layout",
        "e6",
        "e7",
        "e8",
        "ReqCPUS",
        "ReqMem",
        "ReqNodes",
        "e9",
        "Submit",
        "Suspended",
        "SystemCPU",
    ),
    *("TimelimitRaw", "UserCPU", "NodeList", "Partition", "AllocTRES", "Priority", "JobName"),
)
NAMES = ("user_name", "account", "partition", "qos", "state", "job_id", "node_names", "memory_mib", "time_limit_ms")


def live(shared: Path, name: str) -> Outcome:
    return read(shared / "slurm_live" / name, timezone="UTC")


def held(outcome: Outcome) -> dict[str, tuple]:
    """By run: when, how much, and everything about it that all forms print."""
    amounts = ("start_at", "end_at", "suspended_ms", "gpu_units", "cpu_millicores", *NAMES)
    return {row["job_key"]: tuple(row[name] for name in amounts) for row in outcome.good}


def test_local_times_epochs_and_json_of_one_cluster_are_the_same_jobs(shared: Path) -> None:
    forms = {
        name: live(shared, name)
        for name in ("sacct-cols-local.psv", "sacct-cols-epoch-us.txt", "sacct.json", "sacct-ALL.psv")
    }
    assert [outcome.bad for outcome in forms.values()] == [[], [], [], []]
    printed = held(forms["sacct-cols-epoch-us.txt"])
    assert len(printed) == 41
    for name, outcome in forms.items():
        assert held(outcome) == printed, name
        assert held_seconds(outcome.good) == _seconds_of_json(shared / "slurm_live" / "sacct.json")
    steps = sum(reason == "a step of a job" for _, reason in forms["sacct-ALL.psv"].skipped)
    assert (steps, len(forms["sacct-ALL.psv"].skipped)) == (49, 51)
    assert forms["sacct.json"].found.variant == "Slurm JSON, Slurm 22.05.8, openapi/dbv0.0.38, epoch times"
    # The delimiter is in one job's name and comment, where only the form with another delimiter is free of doubt.
    (odd,) = (row for row in forms["sacct-cols-local.psv"].good if row["part_id"] == "21")
    assert odd["job_name"] == "we|ird `name`, ünï"
    assert len(forms["sacct-cols-local.psv"].found.doubts) == 1
    assert forms["sacct-cols-epoch-us.txt"].found.doubts == ()


def _seconds_of_json(path: Path) -> tuple[int, int, int]:
    """The same sums with nothing but Python's own JSON."""
    gpus = cores = seconds = 0
    for job in json.loads(path.read_text())["jobs"]:
        lasted = job["time"]["end"] - job["time"]["start"] if job["time"]["end"] and job["time"]["start"] else 0
        for tres in job["tres"]["allocated"]:
            gpus += lasted * tres["count"] if (tres["type"], tres["name"]) == ("gres", "gpu") else 0
            cores += lasted * tres["count"] if tres["type"] == "cpu" else 0
        seconds += lasted
    return gpus, cores, seconds


def test_without_duplicates_runs_are_missing_and_nothing_else(shared: Path) -> None:
    every, last = (held(live(shared, f"sacct-cols-{name}.psv")) for name in ("local", "nodup"))
    assert last.items() <= every.items()
    assert {key.split(":")[1] for key in every.keys() - last.keys()} <= {key.split(":")[1] for key in last} | {"17"}


def test_a_year_end_of_a_real_cluster_adds_up(shared: Path) -> None:
    path = shared / "sacct" / "xdmod_phillips.log"
    outcome = read(path, columns=list(PHILLIPS), timezone="America/New_York")
    gpus = cores = seconds = 0
    for line in path.read_text().splitlines():
        cells = dict(zip(PHILLIPS, line.split("|"), strict=True))
        lasted = datetime.fromisoformat(cells["End"]) - datetime.fromisoformat(cells["Start"])
        found = {name: re.search(rf"\b{name}=(\d+)", cells["AllocTRES"]) for name in ("cpu", "gres/gpu")}
        seconds += lasted // timedelta(seconds=1)
        cores += lasted // timedelta(seconds=1) * int(found["cpu"][1])
        gpus += lasted // timedelta(seconds=1) * int(found["gres/gpu"][1] if found["gres/gpu"] else 0)
    assert (outcome.bad, outcome.skipped) == ([], [])
    assert held_seconds(outcome.good) == (gpus, cores, seconds) == (1_824_886, 42_364_758, 1_579_753)


def test_memory_flags_of_old_versions_agree_with_what_was_allocated(shared: Path, tmp_path: Path) -> None:
    """Without AllocTRES, cores and memory come from NCPUS and ReqMem, some of which carry the flag for "per CPU"."""
    path = shared / "sacct" / "xdmod_phillips.log"
    allocated = {row["job_key"]: row for row in read(path, columns=list(PHILLIPS)).good}
    without = [("x" if name in ("AllocTRES", "ReqTRES") else name) for name in PHILLIPS]
    outcome = read(path, columns=without)
    assert outcome.bad == []
    assert sum("2147" in line for line in path.read_text().splitlines()) > 1000
    for row in outcome.good:
        assert row["cpu_millicores"] == allocated[row["job_key"]]["cpu_millicores"]
        assert row["gpu_units"] is None
        assert row["memory_mib"] == allocated[row["job_key"]]["memory_mib"]
    assert any("AllocTRES is not printed" in doubt for doubt in outcome.found.doubts)


def test_a_dump_without_header_is_read_with_the_list_of_its_columns(shared: Path) -> None:
    path = shared / "sacct" / "sonar_sacct_output.txt"
    outcome = read(path, columns=list(SONAR), timezone="Europe/Oslo")
    lines = [dict(zip(SONAR, line.split("|"), strict=True)) for line in path.read_text().splitlines()]
    jobs = [line for line in lines if "." not in line["JobIDRaw"]]
    assert outcome.bad == []
    assert len(outcome.good) == sum(job["State"] != "PENDING" and job["Start"][0].isdigit() for job in jobs)
    by_id = {job["JobIDRaw"]: job for job in jobs}
    for row in outcome.good:
        job = by_id[row["part_id"]]
        gpus = re.search(r"gres/gpu=(\d+)", job["AllocTRES"])
        assert row["gpu_units"] == 25_200 * int(gpus[1] if gpus else 0)
        assert row["cpu_millicores"] == 1000 * int(job["ReqCPUS"])
        if row["end_at"]:
            assert (row["end_at"] - row["start_at"]).total_seconds() == int(job["ElapsedRaw"])
    with pytest.raises(ApportionError, match="line 1: not the header line of sacct text") as error:
        read(path)
    assert "list the columns of files without one under 'columns'" in error.value.remedy
    with pytest.raises(ApportionError, match=r"line 1: has 32 cells separated by \|, but 'columns' lists 3"):
        read(path, columns=["JobID", "State", "Start"])


@pytest.mark.parametrize("name", ["fake-line-break", "one-multiline", "multiple-multiline"])
def test_line_breaks_inside_fields_are_read_as_upstream_reads_them(shared: Path, name: str) -> None:
    """The other tool writes a line break in a field as two letters; nothing else may differ."""
    broken, expected = (read(shared / "sacct" / "gcm" / f"sample-sacct-{name}{end}.txt") for end in ("", "-expected"))
    assert _contents(broken) == _contents(expected)
    assert [reason for _, reason in broken.skipped] == [reason for _, reason in expected.skipped]
    assert broken.bad == expected.bad == []


def _contents(outcome: Outcome) -> list[tuple]:
    return [tuple(value for name, value in row.items() if name != "line") for row in outcome.good]


def test_unreadable_bytes_and_broken_lines_lose_nothing(shared: Path) -> None:
    folder = shared / "sacct" / "gcm"
    outcome = read(folder / "sample-sacct-output-invalid-utf8.txt")
    assert (outcome.reading.counts, outcome.bad) == ([11], [])
    assert held_seconds(outcome.good) == (8004, 7311, 7311)
    outcome = read(folder / "sample-sacct-output-with-invalid-lines.txt")
    assert outcome.bad == [(2, "has 93 fields instead of 109")]
    assert "test_user" in outcome.reading.rejects[0].raw
    for name, steps in (("sample-sacct-output.txt", 68), ("sample-sacct-running-output.txt", 10)):
        assert read(folder / name).skipped == [(line, "a step of a job") for line in range(2, steps + 2)]


def test_a_job_that_ends_before_midnight_is_not_on_the_next_day(workspace, shared: Path) -> None:
    """The sample has no amounts, so it is refused as it is; with a core for each job it shows where days end."""
    path = shared / "sacct" / "gcm" / "sample-sacct-output-midnight-edge-case.txt"
    with pytest.raises(ApportionError, match="line 1: missing column AllocTRES or AllocCPUS or NCPUS or ReqTRES"):
        read(path)
    first, *lines = path.read_text().splitlines()
    workspace.deliver("sacct.psv", "\n".join([f"{first}|NCPUS", *(f"{line}|1" for line in lines)]))
    source = workspace.source(
        area="scheduler", kind="slurm", cluster="c", jobs="{data}/inbox/sacct.psv", timezone="UTC"
    )
    report = workspace.land(source, "2021-04-07", "2021-04-09")
    assert report.quarantined == 0
    jobs = [line.split("|") for line in lines if "." not in line.split("|")[0]]
    for day in (date(2021, 4, 7), date(2021, 4, 8)):
        landed = {part for (part,) in workspace.query(f"select part_id from {{jobs}} where date = date '{day}'")}
        assert landed == {
            job
            for job, _, start, end in jobs
            if start[:10] <= str(day) and (end == "Unknown" or end > f"{day}T00:00:00") and start != "Unknown"
        }
    # What the sample's small twin is about: which records end before midnight.
    small = path.with_name("sample-sacct-output-midnight-edge-case-small.txt").read_text().splitlines()
    expected = path.with_name("sample-sacct-output-midnight-edge-case-small-expected.txt").read_text().splitlines()
    before = [line.rsplit("|", 1)[0] for line in small if line.endswith("|End") or line[-19:] < "2021-04-08"]
    assert before == expected
