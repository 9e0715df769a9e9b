"""`apportion check`: every file of a workspace is described, nothing of the workspace is changed."""

from __future__ import annotations

import gzip
import json
import shutil
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestration.cli import app
from orchestration.landing.loader import land
from orchestration.settings import load_sources
from tests.golden.company import FILES as GOLDEN_FILES

HEADER = (
    "ProviderName,ServiceName,ChargeCategory,BillingCurrency,BilledCost,EffectiveCost,ChargePeriodStart,ChargePeriodEnd,"
    "BillingPeriodStart,BillingPeriodEnd,Id"
)
PERIOD = "2026-03-10T00:00:00Z,2026-03-11T00:00:00Z,2026-03-01T00:00:00Z,2026-04-01T00:00:00Z"
OLDER = f"{HEADER}\nNebula,Quantum,Usage,USD,10,10,{PERIOD},1\n"
NEWER = f"{OLDER}Nebula,Quantum,Tax,USD,-2.5,-2.5,{PERIOD},2\nNebula,Quantum,Usage,USD,much,1,{PERIOD},3\n"
JOBS = """\
JobIDRaw|JobID|User|Account|Partition|State|Start|End|ElapsedRaw|AllocTRES|NodeList
1|1|ana|strangers|owned|COMPLETED|1773100800|1773104400|3600|cpu=8,gres/gpu=2,mem=64G|g1
2|2|ana|nlp|owned|COMPLETED|1773100800|1773104400|3600|cpu=8,gres/gpu=2,mem=64G|g1
"""
SOURCES = """\
sources:
  - {name: cloud, area: billing, kind: focus, path: "{data}/inbox/focus*", max_bad_share: 0.5}
  - {name: hal, area: scheduler, kind: slurm, cluster: hal, jobs: "{data}/inbox/sacct*"}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inbox = tmp_path / "data" / "inbox"
    inbox.mkdir(parents=True)
    shutil.copytree(GOLDEN_FILES / "seeds", tmp_path / "seeds")
    (tmp_path / "sources.yml").write_text(SOURCES)
    (inbox / "focus_2026-03_20260402T000000Z.csv").write_text(OLDER)
    (inbox / "sacct_2026-03-10_20260311T000000Z.psv").write_text(JOBS)
    return tmp_path


def check(root: Path, *options: str) -> tuple[int, str]:
    places = ["--sources", str(root / "sources.yml"), "--seeds", str(root / "seeds"), "--data", str(root / "data")]
    result = CliRunner().invoke(app, [*places, "check", *options], catch_exceptions=False)
    return result.exit_code, result.stdout


def files(root: Path) -> dict[str, dict]:
    return {Path(one["path"]).name: one for one in json.loads(check(root, "--json")[1])}


def everything(root: Path) -> list[tuple[str, float]]:
    return sorted((str(path), path.stat().st_mtime) for path in root.rglob("*"))


def test_each_file_is_described_and_nothing_is_changed(root):
    (root / "data" / "inbox" / "focus_2026-03_20260405T000000Z.csv").write_text(NEWER)
    before = everything(root)
    found = files(root)
    assert everything(root) == before
    bill = found["focus_2026-03_20260405T000000Z.csv"]
    assert bill["variant"] == "FOCUS 1.0, CSV"
    assert (bill["first_day"], bill["last_day"]) == ("2026-03-01", "2026-03-31")
    assert (bill["rows"], bill["bad"], bill["unknown_columns"]) == (3, 1, ["Id"])
    assert (bill["bad_rows"][0]["line"], bill["bad_rows"][0]["reason"][:10]) == (4, "BilledCost")
    assert [(total["category"], total["lines"], float(total["billed"])) for total in bill["totals"]] == [
        ("Tax", 1, -2.5),
        ("Usage", 1, 10.0),
    ]
    assert bill["unmapped"] == ["service Quantum (7.50 USD)"]
    jobs = found["sacct_2026-03-10_20260311T000000Z.psv"]
    assert jobs["variant"] == "sacct text, 11 columns, separated by |, epoch times"
    assert jobs["unmapped"] == ["account strangers (1 jobs)"]


def test_what_is_loaded_already_and_what_would_be_replaced_is_said(root):
    for source in load_sources(root / "sources.yml", root / "data"):
        land(source, date(2026, 3, 10), date(2026, 3, 11), root / "data")
    (root / "data" / "inbox" / "focus_2026-03_20260405T000000Z.csv").write_text(NEWER)
    found = files(root)
    assert found["focus_2026-03_20260402T000000Z.csv"]["overlaps"] == ["loaded already, as it is"]
    (said,) = found["focus_2026-03_20260405T000000Z.csv"]["overlaps"]
    assert said == (
        "invoice Nebula-2026-03: focus_2026-03_20260402T000000Z.csv had 1 lines and 10.00 USD, this has 2 and 7.50"
    )


def test_remarks_fail_only_when_asked_and_refusals_always(root):
    assert check(root)[0] == 0
    assert check(root, "--strict")[0] == 1
    whole = gzip.compress(OLDER.encode())
    (root / "data" / "inbox" / "focus_broken.csv.gz").write_bytes(whole[: len(whole) // 2])
    code, said = check(root, "--source", "cloud")
    assert code == 1
    assert "focus_broken.csv.gz: cannot be read" in " ".join(said.split())
    assert "2 files: 0 fine, 1 with remarks, 1 refused" in said
    code, said = check(root, "--source", "nobody")
    assert code == 1
    assert "there is no source 'nobody'" in said


def line(account: str, day: int) -> str:
    charged = f"2026-03-{day:02}T00:00:00Z,2026-03-{day + 1:02}T00:00:00Z,2026-03-01T00:00:00Z,2026-04-01T00:00:00Z"
    return f"Nebula,{account},Usage,USD,{day},{day},{charged}\n"


HEAD = (
    "ProviderName,BillingAccountId,ChargeCategory,BillingCurrency,BilledCost,EffectiveCost,ChargePeriodStart,"
    "ChargePeriodEnd,BillingPeriodStart,BillingPeriodEnd\n"
)


def doubts(root: Path, bills: dict[str, str]) -> dict[str, list[str]]:
    inbox = root / "data" / "inbox"
    for path in inbox.glob("focus*"):
        path.unlink()
    for name, lines in bills.items():
        (inbox / name).write_text(HEAD + lines)
    return {name: one["doubts"] for name, one in files(root).items() if name.startswith("focus")}


def test_bills_that_replace_other_payers_or_count_twice_are_doubted(root):
    other = "in the billing period from 2026-03-01, which is of another billing account"
    replaced = [
        f"replaces focus_a_20260402T000000Z.csv {other} (a): give each its own source",
        f"replaces focus_b_20260403T000000Z.csv {other} (a, b): give each its own source",
    ]
    assert doubts(
        root,
        {
            "focus_a_20260402T000000Z.csv": line("a", 1) + line("a", 2),
            "focus_b_20260403T000000Z.csv": line("b", 1) + line("a", 1),
            "focus_c_20260404T000000Z.csv": line("c", 1),
            "focus_copy_20260404T000000Z.csv": line("c", 1),
            "focus_2026-03-06_20260405T000000Z.csv": line("c", 5) + line("c", 6),
        },
    ) == {
        "focus_a_20260402T000000Z.csv": [],
        "focus_b_20260403T000000Z.csv": [],
        "focus_c_20260404T000000Z.csv": replaced,
        "focus_copy_20260404T000000Z.csv": [
            *replaced,
            "says line for line the same as focus_c_20260404T000000Z.csv, and neither replaces the other",
        ],
        "focus_2026-03-06_20260405T000000Z.csv": [
            "1 of its 2 lines of usage are not of 2026-03-06 to 2026-03-07, as its name says:"
            " other files that have them too count as well"
        ],
    }


def test_parts_whose_names_do_not_say_so_are_doubted(root):
    found = doubts(
        root,
        {
            "focus-1_20260402T000000Z.csv": line("a", 1) + line("a", 2),
            "focus-2_20260402T000100Z.csv": line("a", 3),
            "focus-3_20260402T000200Z.csv": line("a", 4),
            "focus_20260404T000000Z.csv": "".join(line("a", day) for day in (1, 2, 3, 4)),
        },
    )
    assert [one[0].partition(":")[0] if one else None for one in found.values()] == [
        None,
        "replaces focus-1_20260402T000000Z.csv, without a line in common",
        "replaces focus-1_20260402T000000Z.csv and 1 more, without a line in common",
        None,
    ]


def test_parts_of_a_new_version_need_no_line_in_common_with_each_part_of_the_old_one(root):
    one, two, three = (line("a", day) for day in (1, 2, 3))
    found = doubts(
        root,
        {
            "focus_part_1_20260402T000000Z.csv": one,
            "focus_part_2_20260402T000000Z.csv": two,
            "focus_part_1_20260403T000000Z.csv": one,
            "focus_part_2_20260403T000000Z.csv": two,
            "focus_part_3_20260403T000000Z.csv": three,  # new, but its bill is known
        },
    )
    assert not any(found.values())
