"""Landed days: which delivery is right, what a crash leaves, which days a file touches."""

from __future__ import annotations

import os
import random
import shutil
from datetime import date, timedelta

import pyarrow.parquet as pq
import pytest

from orchestration.errors import ApportionError
from orchestration.landing import days as day_files
from orchestration.landing.days import ensure_schema_files, forget_undeclared
from orchestration.landing.schemas import LANDINGS_SCHEMA, TABLES

HEADER = "JobIDRaw|State|Start|End|AllocTRES|NodeList"
JANUARY_5 = 1767571200


def at(day: float) -> int:
    """Epoch seconds of a day of January 2026, with fractions."""
    return int(JANUARY_5 + (day - 5) * 86_400)


def dump(*jobs: tuple[int, float, float | None]) -> str:
    def ending(end: float | None) -> tuple[str, object]:
        return ("RUNNING", "Unknown") if end is None else ("COMPLETED", at(end))

    lines = [f"{number}|{ending(end)[0]}|{at(start)}|{ending(end)[1]}|cpu=1|n1" for number, start, end in jobs]
    return "\n".join([HEADER, *lines]) + "\n"


def name(window: str, delivered: str) -> str:
    return f"sacct_{window}_202601{delivered}T000000Z.psv"


@pytest.fixture
def source(workspace):
    return workspace.source(area="scheduler", kind="slurm", cluster="c", jobs="{data}/inbox/sacct_*.psv")


def jobs_by_day(workspace) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for day, part in workspace.query("select day(date), part_id::int from {jobs} order by 1, 2"):
        found.setdefault(day, []).append(part)
    return found


def test_a_record_is_on_every_day_that_it_overlaps_and_on_no_other(workspace, source):
    workspace.deliver(name("2026-01-05", "10"), dump((1, 4.5, 7), (2, 5, 6), (3, 6, 6), (4, 5.5, 5.5), (5, 3, 5)))
    workspace.land(source, "2026-01-01", "2026-01-10")
    assert jobs_by_day(workspace) == {3: [5], 4: [1, 5], 5: [1, 2, 4], 6: [1, 3]}


def test_a_job_that_is_missing_from_a_newer_dump_of_a_day_vanishes_on_that_day(workspace, source):
    workspace.deliver(name("2026-01-05", "06"), dump((1, 5.1, 5.2), (2, 5.3, 5.4), (3, 4.5, 6.5)))
    workspace.deliver(name("2026-01-06", "07"), dump((3, 4.5, 6.5), (4, 6.1, 6.2)))
    workspace.land(source, "2026-01-04", "2026-01-08")
    assert jobs_by_day(workspace) == {4: [3], 5: [1, 2, 3], 6: [3, 4]}
    _, cursor = workspace.touched(source)
    workspace.deliver(name("2026-01-05", "08"), dump((2, 5.3, 5.4)))
    assert workspace.touched(source, cursor)[0] == ["2026-01-05"]
    report = workspace.land(source, "2026-01-04", "2026-01-08")
    # Job 3 is no job of the 5th any more, says the newer dump; the other days' dumps still know it.
    assert jobs_by_day(workspace) == {4: [3], 5: [2], 6: [3, 4]}
    assert [str(day) for day in report.days_changed] == ["2026-01-05"]
    workspace.deliver(name("2026-01-05", "09"), HEADER + "\n")
    workspace.land(source, "2026-01-05", "2026-01-06")
    assert jobs_by_day(workspace) == {4: [3], 6: [3, 4]}
    assert not (workspace.data / "landing/jobs/date=2026-01-05/src.parquet").exists()
    assert workspace.query("select rows from {landings} where date = '2026-01-05'") == [(0,)]


def test_a_running_job_ends_at_its_delivery_and_its_final_record_touches_all_its_days(workspace, source):
    workspace.deliver(name("2026-01-05", "06"), dump((1, 4.5, None), (2, 5.1, 5.2)))
    workspace.land(source, "2026-01-04", "2026-01-09")
    assert jobs_by_day(workspace) == {4: [1], 5: [1, 2]}
    days, cursor = workspace.touched(source)
    assert days == ["2026-01-04", "2026-01-05"]
    assert workspace.touched(source, cursor)[0] == []
    workspace.deliver(name("2026-01-07", "08"), dump((1, 4.5, 7.25)))
    days, cursor = workspace.touched(source, cursor)
    assert days == ["2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07"]
    # One day alone sees the final record too, though that came with a dump of another day.
    report = workspace.land(source, "2026-01-05", "2026-01-06")
    assert workspace.query("select count(end_at) from {jobs} where date = '2026-01-05'") == [(2,)]
    assert report.tables["jobs"].superseded == 1
    path = workspace.data / "inbox" / name("2026-01-07", "08")
    path.unlink()
    days, cursor = workspace.touched(source, cursor)
    assert days == ["2026-01-04", "2026-01-05", "2026-01-06", "2026-01-07"]
    shutil.rmtree(workspace.data / "landing" / "_index")
    assert workspace.touched(source, cursor)[0] == []


def test_the_newest_version_of_a_job_decides_even_if_it_ends_before_the_window(workspace, source):
    workspace.deliver(name("2026-01-05", "07"), dump((1, 5.5, None)))
    workspace.deliver(name("2026-01-05", "08"), dump((1, 5.5, 5.75)))
    workspace.land(source, "2026-01-06", "2026-01-07")
    assert jobs_by_day(workspace) == {}


def test_a_corrected_record_touches_the_days_that_it_no_longer_covers(workspace, source):
    workspace.deliver(name("2026-01-05", "08"), dump((1, 5.5, None), (2, 5.1, 6.5)))
    _, cursor = workspace.touched(source)
    workspace.deliver(name("2026-01-05", "09"), dump((1, 5.5, 5.75), (2, 5.1, 6.5)))
    assert workspace.touched(source, cursor)[0] == ["2026-01-05", "2026-01-06", "2026-01-07"]


def test_a_changed_file_touches_the_days_it_had_and_the_days_it_has(workspace, source):
    workspace.deliver("sacct_all.psv", dump((1, 5.1, 5.2), (2, 9.1, 9.2)))
    _, cursor = workspace.touched(source)
    workspace.deliver("sacct_all.psv", dump((1, 7.1, 8.2), (3, 9.1, 9.3)), mtime="2026-03-02T00:00:00")
    assert workspace.touched(source, cursor)[0] == [f"2026-01-0{d}" for d in (5, 7, 8, 9)]


def many_days(workspace) -> None:
    """Nine days of dumps with long, running, deleted and re-delivered jobs."""
    dice = random.Random(3)
    jobs = [(n, start := dice.uniform(1, 10), start + dice.expovariate(1)) for n in range(1, 80)]
    for day in range(1, 10):
        here = [(n, s, e if e <= day + 1 else None) for n, s, e in jobs if s < day + 1 and e > day]
        workspace.deliver(name(f"2026-01-{day:02}", f"{day + 1:02}"), dump(*here))
    workspace.deliver(name("2026-01-04", "20"), dump(*[(n, s, e) for n, s, e in jobs if s < 5 and e > 4 and n % 3]))
    broken = dump((1, 5.5, 5.75)).replace("cpu=1", "cpu=x")
    workspace.deliver(name("2026-01-06", "05"), broken)


def test_days_are_the_same_at_once_one_by_one_shuffled_and_without_the_index(workspace, source):
    many_days(workspace)
    source = source.model_copy(update={"max_bad_share": 1.0})
    report = workspace.land(source, "2026-01-01", "2026-01-12")
    assert report.tables["jobs"].superseded > 0
    at_once = workspace.snapshot()
    assert sum(row[3] for row in at_once["landings"]) == 1, "each bad row counts on one day"
    for forget in (False, True):
        shutil.rmtree(workspace.data / "landing" / "jobs")
        days = [date(2026, 1, 1) + timedelta(days=n) for n in range(11)]
        random.Random(1).shuffle(days)
        for day in days:
            if forget:
                shutil.rmtree(workspace.data / "landing" / "_index")
            one = workspace.land(source, str(day), str(day + timedelta(days=1)))
            assert one.days_changed == [], "the content is what it was"
        assert workspace.snapshot() == at_once


def test_a_delivery_that_says_the_same_again_changes_no_day(workspace, source):
    workspace.deliver(name("2026-01-05", "06"), dump((1, 5.1, 5.2), (2, 5.1, 5.3)))
    workspace.land(source, "2026-01-05", "2026-01-06")
    workspace.deliver(name("2026-01-05", "07"), dump((2, 5.1, 5.3), (1, 5.1, 5.2)))
    assert workspace.land(source, "2026-01-05", "2026-01-06").days_changed == []


def test_too_many_bad_rows_land_nothing_and_say_where_to_look(workspace, source):
    workspace.deliver(name("2026-01-05", "06"), dump((1, 5.1, 5.2)))
    workspace.land(source, "2026-01-05", "2026-01-06")
    before = workspace.snapshot()
    path = workspace.deliver(name("2026-01-05", "07"), dump((1, 5.1, 5.2), (2, 5.1, 5.3)) + "3|cut\n")
    with pytest.raises(ApportionError) as error:
        workspace.land(source, "2026-01-05", "2026-01-06")
    assert error.value.message == (
        f"source 'src': 1 of 4 rows cannot be read (25.0%, allowed 1.0%), most of them in {path} (1 of 3): "
        "line 4: has 2 fields instead of 6. Nothing of this source was landed"
    )
    assert "quarantine/src" in error.value.remedy
    assert "max_bad_share" in error.value.remedy
    assert workspace.snapshot() == before
    assert workspace.quarantined() == [(4, "has 2 fields instead of 6")]
    path.unlink()
    workspace.land(source, "2026-01-05", "2026-01-06")
    assert workspace.quarantined() == [], "what is gone from the inbox is gone from quarantine"


def test_a_run_that_dies_leaves_old_days_or_new_days_and_the_next_run_repairs_it(workspace, source, monkeypatch):
    workspace.deliver("sacct_all.psv", dump((1, 5.1, 8.2)))
    workspace.land(source, "2026-01-05", "2026-01-09")
    workspace.deliver("sacct_all.psv", dump((1, 5.1, 8.2), (2, 5.1, 8.2)), mtime="2026-03-02T00:00:00")
    replace, done = os.replace, []

    def dying(beside, target):
        if "/jobs/" in str(target) and len(done) == 2:
            raise KeyboardInterrupt
        done.extend([target] if "/jobs/" in str(target) else [])
        replace(beside, target)

    monkeypatch.setattr(day_files.os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        workspace.land(source, "2026-01-05", "2026-01-09")
    monkeypatch.undo()
    assert jobs_by_day(workspace) == {5: [1, 2], 6: [1, 2], 7: [1], 8: [1]}
    left = list(workspace.data.glob("landing/jobs/*/*.tmp-*"))
    assert len(left) == 1
    assert not left[0].name.endswith(".parquet")
    workspace.land(source, "2026-01-05", "2026-01-09")
    assert jobs_by_day(workspace) == {day: [1, 2] for day in (5, 6, 7, 8)}
    assert list(workspace.data.glob("landing/**/*.tmp-*")) == []


def test_a_pattern_without_files_is_an_error_unless_the_source_is_optional(workspace, source):
    with pytest.raises(ApportionError, match=r"source 'src': no file matches .*/inbox/sacct_\*.psv") as error:
        workspace.land(source, "2026-01-05", "2026-01-06")
    assert "optional: true" in error.value.remedy
    assert workspace.touched(source)[0] == []
    report = workspace.land(source.model_copy(update={"optional": True}), "2026-01-05", "2026-01-06")
    assert report.rows == 0


def test_an_empty_window_is_refused(workspace, source):
    with pytest.raises(ApportionError, match="the window 2026-01-06 to 2026-01-06 is empty"):
        workspace.land(source, "2026-01-06", "2026-01-06")


def test_every_table_can_be_read_before_anything_is_landed(workspace, source):
    ensure_schema_files(workspace.data)
    for table in [*TABLES, "landings"]:
        assert workspace.query(f"select count(*) from {{{table}}}") == [(0,)]
    workspace.deliver(name("2026-01-05", "06"), dump((1, 5.1, 5.2)))
    workspace.land(source, "2026-01-05", "2026-01-06")
    for table, schema in (("jobs", TABLES["jobs"].schema), ("landings", LANDINGS_SCHEMA)):
        files = sorted((workspace.data / "landing" / table).glob("*/*.parquet"))
        empty, written = (pq.read_schema(path) for path in files)
        assert [(f.name, f.type) for f in written] == [(f.name, f.type) for f in empty]
        assert set(schema.names) <= set(written.names)


@pytest.mark.parametrize(
    ("pattern", "name", "content"),
    [
        ("sacct_*", "sacct_2026-01-05_20260106T001500Z.psv.gz", ""),
        ("sacct_*", "sacct_2026-01-05_20260106T001500Z.psv", "\n\n"),
    ],
)
def test_a_dump_without_a_header_is_refused_and_erases_nothing(workspace, pattern, name, content):
    workspace.deliver(name, content)
    source = workspace.source(
        area="scheduler", kind="slurm", cluster="c", jobs=f"{{data}}/inbox/{pattern}", timezone="UTC"
    )
    with pytest.raises(ApportionError, match="the file is empty, not even a header line"):
        workspace.land(source, "2026-01-05", "2026-01-06")


def test_blank_lines_before_the_header_lose_nothing(workspace):
    header = "JobIDRaw|JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|AllocTRES|NodeList"
    job = "7|7|train|ann|nlp|gpu|normal|COMPLETED|1767571200|1767571200|1767574800|3600|cpu=1,mem=1G|n1"
    workspace.deliver("sacct_2026-01-05_20260106T001500Z.psv", f"\n  \n{header}\n{job}\n")
    source = workspace.source(area="scheduler", kind="slurm", cluster="c", jobs="{data}/inbox/sacct_*")
    assert workspace.land(source, "2026-01-05", "2026-01-06").rows == 1
    assert workspace.query("select job_id, line from {jobs}") == [("7", 4)]


def test_an_empty_export_of_pods_is_refused(workspace):
    workspace.deliver("pods_2026-01-05_20260106T001500Z.jsonl.gz", "")
    source = workspace.source(area="scheduler", kind="kubernetes", cluster="c", path="{data}/inbox/pods_*")
    with pytest.raises(ApportionError, match="the file is empty"):
        workspace.land(source, "2026-01-05", "2026-01-06")


def test_what_a_source_landed_goes_when_the_source_is_no_longer_declared(workspace):
    folder = workspace.data / "landing" / "charges" / "date=2026-01-05"
    folder.mkdir(parents=True)
    for name in ("old_name", "new_name", "_schema"):
        (folder / f"{name}.parquet").touch()
    assert forget_undeclared(workspace.data, ["new_name"]) == ["old_name"]
    assert sorted(file.stem for file in folder.iterdir()) == ["_schema", "new_name"]
