"""A policy that makes no sense is refused by name, with the remedy, and nothing in the warehouse changes.

Many rows are spoiled at once and checked in one go, since a check costs two seconds: what it finds is exactly what was
spoiled, no more and no less.
"""

from __future__ import annotations

import re

import duckdb
import pytest
from typer.testing import CliRunner

from orchestration import dbt
from orchestration.cli import app
from orchestration.errors import ApportionError
from orchestration.workspace import Workspace
from tests.policy.company import add, make_workspace, replace, write_seeds
from tests.policy.spoiled import CHAPTERS, Spoiled
from tests.warehouses import GOLDEN, command

FINDING = re.compile(
    r"^  (?P<file>seeds/\S+\.csv), row (?P<row>\S+): (?P<problem>.+)\n    → (?P<remedy>.+)$", re.MULTILINE
)

Finding = tuple[str, str, str]
"""Row, problem and file: together they are said once."""


class Refusals:
    """What is said of each chapter, asked once; and whether the warehouse is what it was."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.before = workspace.warehouse.read_bytes()
        self.told: dict[str, dict[Finding, str]] = {}

    def of(self, chapter: str) -> dict[Finding, str]:
        """The remedies, by what they are for."""
        if chapter not in self.told:
            write_seeds(self.workspace.seeds)
            for spoiled in CHAPTERS[chapter]:
                spoiled.spoil(self.workspace.seeds)
            with pytest.raises(dbt.SeedsRefused) as refusal:
                dbt.check_seeds(self.workspace)
            self.told[chapter] = {
                (found["row"], found["problem"], found["file"]): found["remedy"]
                for found in FINDING.finditer(refusal.value.message)
            }
        return self.told[chapter]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The company, whose seeds are accepted as they are, and something in its warehouse."""
    workspace = make_workspace(tmp_path_factory.mktemp("policy"))
    dbt.check_seeds(workspace)
    assert not workspace.warehouse.exists()
    with duckdb.connect(str(workspace.warehouse)) as warehouse:
        warehouse.execute("create schema seeds; create table seeds.teams as select 'vision' as team_id")
    return workspace


@pytest.fixture(scope="module")
def refusals(workspace: Workspace) -> Refusals:
    return Refusals(workspace)


@pytest.mark.parametrize(
    ("chapter", "spoiled"),
    [
        pytest.param(chapter, spoiled, id=f"{chapter}: {spoiled.what}")
        for chapter, all_of_it in CHAPTERS.items()
        for spoiled in all_of_it
    ],
)
def test_a_spoiled_row_is_named_with_its_remedy(refusals: Refusals, chapter: str, spoiled: Spoiled) -> None:
    told = refusals.of(chapter)
    for row, problem in spoiled.found.items():
        assert spoiled.remedy in told[row, problem, f"seeds/{spoiled.seed}.csv"]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_else_is_refused_and_the_warehouse_is_byte_for_byte_the_same(refusals: Refusals, chapter: str) -> None:
    found = {(row, problem) for row, problem, _ in refusals.of(chapter)}
    assert found == {finding for spoiled in CHAPTERS[chapter] for finding in spoiled.found.items()}
    assert refusals.workspace.warehouse.read_bytes() == refusals.before


# --- files that cannot be loaded ---------------------------------------------------------------------------

TEAM = "vision,Vision,,CC-1,3,2026-01-01,,Golden company"


@pytest.mark.parametrize(
    ("seed", "old", "new", "message"),
    [
        (
            "policy/teams",
            TEAM,
            "vision,Vision,,CC-1,three,2026-01-01,,Golden company",
            "seeds/policy/teams.csv, line 2, column headcount: 'three' is no whole number; write digits only",
        ),
        (
            "policy/teams",
            TEAM,
            "vision,Vision,,CC-1,3,01.01.2026,,Golden company",
            "line 2, column valid_from: '01.01.2026' is no day; write year-month-day",
        ),
        (
            "policy/teams",
            TEAM,
            "vision,Vision,,CC-1,3,2026-01-01,2026-02-30,Golden company",
            "line 2, column valid_to: '2026-02-30' is no day",
        ),
        (
            "policy/teams",
            TEAM,
            "vision,Vision,,CC-1,3,2026-01-01,,Golden, company",
            "seeds/policy/teams.csv, line 2: 9 cells under 8 columns, the last is ' company'",
        ),
        (
            "policy/teams",
            TEAM,
            "vision,Vision,,CC-1,3,2026-01-01,Golden company",
            "line 2: 7 cells under 8 columns, the last is 'Golden company'; an empty cell needs its comma",
        ),
        (
            "policy/teams",
            TEAM,
            'vision,Vision,,CC-1,3,2026-01-01,,"Golden" company',
            "seeds/policy/teams.csv, line 2: ',' expected after '\"'",
        ),
        (
            "policy/overhead_shares",
            "*,nlp,0.333333333,",
            "*,nlp,0.3333333333,",
            "seeds/policy/overhead_shares.csv, line 2, column share: '0.3333333333' is no number with at most nine",
        ),
        (
            "policy/workload_rules",
            "training,true,",
            "training,yes,",
            "seeds/policy/workload_rules.csv, line 2, column self_declared: 'yes' is neither true nor false",
        ),
        (
            "policy/entitlements",
            "pool_id,team_id,gpus,",
            "pool_id,team_id,cpus,",
            "seeds/policy/entitlements.csv, line 1: the column gpus is missing; the columns are pool_id,team_id,gpus,",
        ),
        (
            "policy/entitlements",
            "pool_id,team_id,gpus,",
            "pool_id,team_id,cpus,",
            "seeds/policy/entitlements.csv, line 1: there is no column cpus",
        ),
        (
            "reference/gpu_models",
            "gpu_model,vendor,memory_gib,mig_slices,tdp_watts",
            "gpu_model,vendor,memory_gib,mig_slices,tdp_watts,vendor",
            "seeds/reference/gpu_models.csv, line 1: the column vendor is there 2 times; keep one of them",
        ),
    ],
    ids=[
        *("a word in a number", "a day of another form", "no such day", "a cell too many", "a cell too few"),
        *("a quote astray", "a tenth decimal", "no truth", "a missing column", "an unknown column", "a column twice"),
    ],
)
def test_a_cell_that_cannot_be_loaded_is_named(refusals: Refusals, seed: str, old: str, new: str, message: str) -> None:
    write_seeds(refusals.workspace.seeds)
    replace(refusals.workspace.seeds, seed, old, new)
    with pytest.raises(ApportionError) as refusal:
        dbt.check_seeds(refusals.workspace)
    assert message in refusal.value.message
    assert refusal.value.remedy == "mend the cells that are named and run again"
    assert refusals.workspace.warehouse.read_bytes() == refusals.before


def test_text_in_another_encoding_is_named(refusals: Refusals) -> None:
    write_seeds(refusals.workspace.seeds)
    path = refusals.workspace.seeds / "policy" / "teams.csv"
    path.write_bytes(path.read_bytes().replace(b"Vision", "Züri".encode("latin-1")))
    with pytest.raises(ApportionError, match=r"teams\.csv: byte \d+ is no UTF-8; save the file as CSV in UTF-8"):
        dbt.check_seeds(refusals.workspace)


def test_a_missing_file_is_named_with_its_header(refusals: Refusals) -> None:
    write_seeds(refusals.workspace.seeds)
    (refusals.workspace.seeds / "policy" / "entitlements.csv").unlink()
    with pytest.raises(ApportionError, match=r"lacks seeds/policy/entitlements\.csv") as refusal:
        dbt.check_seeds(refusals.workspace)
    assert "pool_id,team_id,gpus,valid_from,valid_to,reason" in str(refusal.value.remedy)


# --- when it is checked ------------------------------------------------------------------------------------


def test_what_has_passed_is_not_checked_again_until_it_changes(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[str] = []
    scratch_warehouse = dbt.scratch_warehouse

    def counted(of: Workspace, purpose: str) -> object:
        checks.append(purpose)
        return scratch_warehouse(of, purpose)

    monkeypatch.setattr(dbt, "scratch_warehouse", counted)
    write_seeds(workspace.seeds)
    dbt.check_seeds(workspace)
    assert checks == [], "the company's own seeds have passed before"
    add(workspace.seeds, "policy/entitlements", "gpu-cloud,nlp,1,2026-01-01,,One more\n")
    dbt.check_seeds(workspace)
    dbt.check_seeds(workspace)
    assert checks == ["seeds"]
    assert not list((workspace.data / "dbt" / "scratch").iterdir()), "nothing is left of it"


@pytest.mark.parametrize(
    "arguments",
    [("run", "--from", str(GOLDEN.start), "--to", str(GOLDEN.end)), ("dbt", "build", "--select", "complexity_weights")],
    ids=["run", "dbt"],
)
def test_no_command_lets_a_spoiled_policy_into_the_warehouse(refusals: Refusals, arguments: tuple[str, ...]) -> None:
    workspace = refusals.workspace
    write_seeds(workspace.seeds)
    add(workspace.seeds, "policy/complexity_weights", "*,*,-2,2026-01-01,,Upside down\n")
    answer = CliRunner().invoke(app, command(workspace, *arguments)[1:])
    assert answer.exit_code == 1, answer.output
    assert answer.output.startswith("✗ the policy is refused, and no table has changed:")
    assert "complexity_weights.csv, row complexity_weights/*/*@2026-01-01: weight = -2" in answer.output
    assert "→ make it 0.001 or more" in answer.output
    assert workspace.warehouse.read_bytes() == refusals.before
    assert not workspace.published.exists()
