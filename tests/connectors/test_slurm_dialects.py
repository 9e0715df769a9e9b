"""Any table of jobs, written in any dialect, reads back equal; damaged files are read right or refused with reasons."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from orchestration.errors import ApportionError
from tests.connectors.slurm_reading import Outcome, Row, read
from tests.connectors.slurm_writing import (
    PLAIN_NAMES,
    SHAPES,
    UGLY_NAMES,
    Dialect,
    Job,
    cells,
    document,
    random_dialect,
    random_jobs,
)

FREE_TEXT = ("job_name", "labels")
USUAL = tuple(cells(random_jobs(random.Random(0), 1, PLAIN_NAMES)[0], str, True))


def read_text(tmp_path: Path, content: str | bytes, **settings: Any) -> Outcome:
    path = tmp_path / "dump"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path, **{"timezone": None, **settings})


def read_or_refuse(tmp_path: Path, content: bytes, **settings: Any) -> Outcome | None:
    """None: the file was refused as a whole, by its name and with a way out."""
    try:
        return read_text(tmp_path, content, **settings)
    except ApportionError as refusal:
        if str(tmp_path / "dump") not in str(refusal) or not refusal.remedy:
            raise
        return None


def said(rows: Sequence[Row], like: Sequence[Job]) -> dict[str, dict[str, Any]]:
    names = like[0].expected()
    return {row["part_id"]: {name: row[name] for name in names} for row in rows}


def told(jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
    return {str(job.raw): job.expected() for job in jobs}


@pytest.mark.parametrize("seed", range(8))
def test_every_dialect_of_text_reads_back_equal(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    jobs = random_jobs(chance, 60, tuple(name for name in PLAIN_NAMES if "tab" not in name))
    dialect = random_dialect(chance)
    for form in (dialect, replace(dialect, has_header=False, delimiter=chance.choice(["|", "\x1f", "|#"]))):
        outcome = read_text(tmp_path, form.text(jobs), **form.settings)
        assert said(outcome.good, jobs) == told(jobs), form
        assert (outcome.bad, outcome.skipped, outcome.found.unknown_columns) == ([], [], ())


@pytest.mark.parametrize("has_header", [True, False])
@pytest.mark.parametrize("delimiter", ["\t", ";", ","])
def test_delimiters_that_values_may_hold_are_read(tmp_path: Path, delimiter: str, has_header: bool) -> None:
    """Commas separate what a job held as well, which must not be taken for the free text behind it."""
    jobs = random_jobs(random.Random(1), 30, ("train", "a=b", "[x]"))
    for seed in range(3):
        columns = tuple(random.Random(seed).sample(USUAL, len(USUAL))) if seed else USUAL
        form = Dialect(delimiter, "epoch", columns, has_header=has_header)
        outcome = read_text(tmp_path, form.text(jobs), **form.settings)
        assert said(outcome.good, jobs) == told(jobs)
        assert outcome.bad == []


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_commas_in_quotes_separate_nothing(tmp_path: Path, quoting: Literal[0, 1]) -> None:
    """Tables that another program saved as CSV."""
    jobs = random_jobs(random.Random(2), 40, PLAIN_NAMES)
    written = io.StringIO()
    writer = csv.writer(written, quoting=quoting)
    writer.writerow(USUAL)
    writer.writerows([list(cells(job, str, True).values()) for job in jobs])
    outcome = read_text(tmp_path, written.getvalue())
    assert said(outcome.good, jobs) == told(jobs)
    assert (outcome.bad, outcome.found.unknown_columns) == ([], ())


def test_lists_of_nodes_keep_their_commas_or_their_record_is_refused(tmp_path: Path) -> None:
    text = "JobID,{}State,Start,End,AllocTRES,NodeList{}\n7,{}COMPLETED,1767571200,1767574800,cpu=4,mem=1G,{}{}\n"
    for nodes in ("n1,n2,n3,n5", "n[1-3,5]", "n1,n[2-3,5]"):
        (row,) = read_text(tmp_path, text.format("JobName,", "", "x, y,", nodes, "")).good
        assert (row["job_name"], row["cpu_millicores"], row["memory_mib"]) == ("x, y", 4000, 1024)
        assert row["node_names"] == "n1,n2,n3,n5"
    # Where a list ends and free text begins, nobody can tell.
    outcome = read_text(tmp_path, text.format("", ",JobName", "", "n1,n2", ",x"))
    assert (outcome.good, len(outcome.bad)) == ([], 1)


@pytest.mark.parametrize("seed", range(6))
def test_free_text_with_delimiters_and_line_breaks_never_makes_anything_else_wrong(tmp_path: Path, seed: int) -> None:
    """A cell that cannot be told for certain is none, and a record that cannot be cut for certain is refused."""
    chance = random.Random(seed)
    jobs = random_jobs(chance, 60, UGLY_NAMES)
    form = replace(random_dialect(chance), newline="\n", **({"columns": USUAL} if seed % 2 else {}))
    outcome = read_text(tmp_path, form.text(jobs), **form.settings)
    found, expected = said(outcome.good, jobs), told(jobs)
    names = {str(job.raw): job.name for job in jobs}
    for part, row in found.items():
        if names[part] == "1|2\n3|4" and form.columns != USUAL:
            continue  # numbers on both sides of a delimiter look like ids
        uncertain = {name for name in FREE_TEXT if row[name] is None}
        assert {**row, **{name: expected[part][name] for name in uncertain}} == expected[part]
        if not _is_ugly(names[part], form.delimiter) and form.columns[0] not in ("JobName", "Comment"):
            assert row == expected[part]
    missing = [names[part] for part in expected.keys() - found.keys()]
    assert all(_is_ugly(name, form.delimiter) for name in missing)
    assert len(outcome.bad) >= len(missing)
    if form.columns == USUAL:
        # sacct's usual order has cells of a certain shape around the name; only this one looks like two records.
        assert set(missing) <= {"1|2\n3|4"}


def _is_ugly(name: str, delimiter: str) -> bool:
    return delimiter.strip() in name or "\n" in name or delimiter[0] in name


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("indent", [None, 1])
def test_every_shape_of_json_reads_back_equal(tmp_path: Path, shape: str, indent: int | None) -> None:
    jobs = random_jobs(random.Random(5), 60, UGLY_NAMES)
    outcome = read_text(tmp_path, document(jobs, SHAPES[shape], indent))
    assert said(outcome.good, jobs) == told(jobs)
    assert (outcome.bad, outcome.skipped) == ([], [])
    assert outcome.found.variant == "Slurm JSON, Slurm 23.11.1, v0.0.40, epoch times"


def test_an_error_is_no_empty_day(tmp_path: Path) -> None:
    def document(*errors: Any) -> str:
        return json.dumps({"jobs": [], "errors": errors, "meta": {}})

    for nothing in ([], [{"error_number": 9003, "error": "Nothing found"}], [{"description": "Nothing found"}]):
        assert read_text(tmp_path, document(*nothing)).good == []
    failed = {"error_number": 7000, "error": "Unable to connect to database", "description": "slurmdb_jobs_get()"}
    with pytest.raises(ApportionError, match="answered with an error: Unable to connect to database: slurmdb_jobs_get"):
        read_text(tmp_path, document(failed))
    with pytest.raises(ApportionError, match="answered with an error: number 5"):
        read_text(tmp_path, document({"error_code": 5}))


def test_a_json_number_that_marks_16_bits_is_a_number(tmp_path: Path) -> None:
    jobs = [replace(random_jobs(random.Random(5), 1, PLAIN_NAMES)[0], raw=65534, shown="65534", memory=65534)]
    for shape in SHAPES.values():
        assert said(read_text(tmp_path, document(jobs, shape)).good, jobs) == told(jobs)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_files_that_were_encoded_again_are_the_same_jobs(tmp_path: Path, encoding: str) -> None:
    jobs = random_jobs(random.Random(3), 40, ("train", "ünï"))
    form = Dialect("|", "epoch", USUAL)
    outcome = read_text(tmp_path, form.text(jobs).encode(encoding))
    names = {"ünï": "\ufffdn\ufffd"} if encoding == "latin-1" else {}
    expected = {
        part: {**row, "job_name": names.get(row["job_name"], row["job_name"])} for part, row in told(jobs).items()
    }
    assert said(outcome.good, jobs) == expected
    assert outcome.bad == []


FORMS = {
    "text": Dialect("|", "epoch", USUAL),
    "text with the name at the end": Dialect("|", "local", (*(n for n in USUAL if n != "JobName"), "JobName")),
    "text without header": Dialect("\x1f", "epoch", USUAL, has_header=False),
    "text with a last delimiter": Dialect("|", "zulu", USUAL, has_last_delimiter=True),
}


@pytest.mark.parametrize("name", FORMS)
def test_doubled_and_shuffled_dumps_are_the_same_jobs(tmp_path: Path, name: str) -> None:
    form, chance = FORMS[name], random.Random(7)
    jobs = random_jobs(chance, 40, PLAIN_NAMES)
    text = form.text(jobs)
    outcome = read_text(tmp_path, text + text, **form.settings)
    assert said(outcome.good, jobs) == told(jobs)
    assert [reason.startswith("repeats line ") for _, reason in outcome.skipped] == [True] * len(jobs)
    mixed = chance.sample(jobs, len(jobs))
    assert said(read_text(tmp_path, form.text(mixed), **form.settings).good, jobs) == told(jobs)


@pytest.mark.parametrize("name", FORMS)
def test_a_file_that_is_cut_off_loses_its_last_record_at_most(tmp_path: Path, name: str) -> None:
    form, chance = FORMS[name], random.Random(8)
    jobs = random_jobs(chance, 12, ("train", "ünï"))
    text = form.text(jobs)
    begin = len(form.lines([])[0]) + 1 if form.has_header else 60
    for _ in range(6):
        part = text[: chance.randrange(begin, len(text))]
        outcome = read_text(tmp_path, part, **form.settings)
        whole = jobs[: part.count("\n") - form.has_header]
        found = said(outcome.good, jobs)
        assert {part: row for part, row in found.items() if part in told(whole)} == told(whole)
        cut_off = part.rpartition("\n")[2]
        assert len(outcome.good) + len(outcome.bad) == len(whole) + bool(cut_off)
        assert all(reason for _, reason in outcome.bad)


@pytest.mark.parametrize("name", FORMS)
def test_a_damaged_bit_harms_the_record_that_it_is_in_and_no_other(tmp_path: Path, name: str) -> None:
    """Where records are redundant, as times and durations are, the damage is found; elsewhere it stays in its cell."""
    form, chance = FORMS[name], random.Random(9)
    jobs = random_jobs(chance, 10, ("train", "ünï"))
    original, expected = form.text(jobs).encode(), told(jobs)
    for _ in range(16):
        damaged = bytearray(original)
        place = chance.randrange(len(damaged))
        damaged[place] ^= 1 << chance.randrange(8)
        is_line_end = original[place] == 10 or damaged[place] == 10
        outcome = read_or_refuse(tmp_path, bytes(damaged), **form.settings)
        if outcome is None:
            continue
        found = said(outcome.good, jobs)
        harmed = [part for part, row in expected.items() if found.get(part) != row]
        assert len(harmed) <= 1 + is_line_end, bytes(damaged[place - 20 : place + 20])
        for part in set(harmed) & set(found):
            row = found[part]
            assert sum(row[field] != expected[part][field] for field in row) <= 3
            if row["end_at"] and expected[part]["end_at"]:
                assert row["end_at"] - row["start_at"] == expected[part]["end_at"] - expected[part]["start_at"]


@pytest.mark.parametrize("shape", SHAPES)
def test_damaged_json_is_refused_with_the_line_or_harms_one_record(tmp_path: Path, shape: str) -> None:
    chance = random.Random(10)
    jobs = random_jobs(chance, 6, ("train", "ünï"))
    text = document(jobs, SHAPES[shape])
    for _ in range(5):
        with pytest.raises(ApportionError, match=r"line \d+: not readable as JSON"):
            read_text(tmp_path, text[: chance.randrange(1, len(text) - 1)])
    with pytest.raises(ApportionError, match="more than one document"):
        read_text(tmp_path, text + text)
    expected, original = told(jobs), text.encode()
    for _ in range(10):
        damaged = bytearray(original)
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        outcome = read_or_refuse(tmp_path, bytes(damaged))
        if outcome is None:
            continue
        found = said(outcome.good, jobs)
        assert sum(found.get(part) != row for part, row in expected.items()) <= 1
