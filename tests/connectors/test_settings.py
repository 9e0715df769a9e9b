"""sources.yml: what is wrong is said with the file, the source, the field and the way out."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from orchestration.errors import ApportionError
from orchestration.landing.deliveries import delivery
from orchestration.settings import load_sources

GOOD = "- {name: bills, area: billing, kind: focus, path: bills/*.csv}"
SLURM = "- {name: alps, area: scheduler, kind: slurm, cluster: alps, jobs: x"


def write(tmp_path: Path, *entries: str) -> Path:
    path = tmp_path / "sources.yml"
    path.write_text("\n".join(["sources:", *(f"  {entry}" for entry in entries)]))
    return path


def test_paths_are_relative_to_the_file_or_below_the_data_folder(tmp_path):
    path = write(tmp_path, GOOD, f'{SLURM}, events: "{{data}}/inbox/e_*"}}')
    bills, alps = load_sources(path, tmp_path / "elsewhere")
    assert bills.path == str(tmp_path / "bills/*.csv")
    assert alps.events == str(tmp_path / "elsewhere/inbox/e_*")
    assert alps.reservations is None


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (SLURM + ", tz: UTC}", "source 'alps', field 'tz': unknown; remove it or correct its spelling"),
        (
            SLURM + ", timezone: Europe/Zürich}",
            "source 'alps', field 'timezone': unknown time zone 'Europe/Zürich'",
        ),
        (
            SLURM.replace("kind: slurm", "kind: slurn") + "}",
            "field 'kind': 'slurn' is not a kind; did you mean 'slurm'?",
        ),
        (SLURM.replace("kind: slurm, ", "") + "}", "field 'kind': None is not a kind; known kinds: focus"),
        (SLURM.replace("scheduler", "billing") + "}", "kind 'slurm' belongs to area 'scheduler'"),
        (SLURM.replace(", jobs: x", "") + "}", "source 'alps', field 'jobs': missing; add it"),
        (SLURM.replace("alps", "Alps", 1) + "}", "field 'name': 'Alps' is not a name"),
        (GOOD, "source 'bills', field 'name': used twice"),
        (
            SLURM + ", max_bad_share: 2}",
            "source 'alps', field 'max_bad_share': Input should be less than or equal to 1",
        ),
        ("- just a word", "source number 2, field 'kind'"),
    ],
)
def test_a_mistake_is_named(tmp_path, entry, message):
    with pytest.raises(ApportionError) as error:
        load_sources(write(tmp_path, GOOD, entry), tmp_path)
    assert message in error.value.message
    assert str(tmp_path / "sources.yml") in error.value.message
    assert error.value.remedy


def test_all_mistakes_are_reported_at_once(tmp_path):
    path = write(tmp_path, SLURM + ", tz: UTC}", GOOD.replace("focus", "focus, colour: red"))
    with pytest.raises(ApportionError) as error:
        load_sources(path, tmp_path)
    assert "'tz'" in error.value.message
    assert "'colour'" in error.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sources: [", "not readable as YAML"),
        ("", "no list of sources"),
        ("sources: []", "no list of sources"),
        ("sources: [1]\nsource: 2", "unknown key 'source'"),
    ],
)
def test_a_file_that_is_no_list_of_sources(tmp_path, text, message):
    path = tmp_path / "sources.yml"
    path.write_text(text)
    with pytest.raises(ApportionError, match=message):
        load_sources(path, tmp_path)


def test_a_missing_file_says_how_to_point_at_another_one(tmp_path):
    with pytest.raises(ApportionError, match="there is no sources file") as error:
        load_sources(tmp_path / "nowhere.yml", tmp_path)
    assert "APPORTION_SOURCES" in error.value.remedy


@pytest.mark.parametrize(
    ("name", "declared", "delivered"),
    [
        ("sacct_2026-01-05_20260106T001500Z.psv", ("2026-01-05", "2026-01-06"), "2026-01-06T00:15:00"),
        ("focus_2026-12_20270103T060000Z.csv.gz", ("2026-12-01", "2027-01-01"), "2027-01-03T06:00:00"),
        (
            "focus_2026-01-12_2026-01-19_20260210T060000Z.csv",
            ("2026-01-12", "2026-01-19"),
            "2026-02-10T06:00:00",
        ),
        ("dcgm_2026-01-05.parquet", ("2026-01-05", "2026-01-06"), None),
        ("owned_2026.csv", None, None),
        ("nodes-20260101T000000Z.csv", None, "2026-01-01T00:00:00"),
    ],
)
def test_a_file_name_says_when_it_came_and_for_which_days_it_is_complete(tmp_path, name, declared, delivered):
    path = tmp_path / name
    path.touch()
    found = delivery(path, tmp_path)
    assert found.declared == (tuple(map(date.fromisoformat, declared)) if declared else None)
    if delivered:
        assert found.delivered_at == datetime.fromisoformat(delivered).replace(tzinfo=UTC)
    else:
        assert found.delivered_at.timestamp() == path.stat().st_mtime_ns // 10**9


@pytest.mark.parametrize(
    ("name", "message"),
    [("x_2026-02-30.csv", "a date that does not exist"), ("x_2026-01-09_2026-01-05.csv", "is empty")],
)
def test_a_file_name_with_an_impossible_window_is_refused(tmp_path, name, message):
    (tmp_path / name).touch()
    with pytest.raises(ApportionError, match=message):
        delivery(tmp_path / name, tmp_path)
