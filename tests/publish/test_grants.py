"""Teams see their own rows: nobody else's name is in a team's file, and the statements for BigQuery say exactly who."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest
from rich.console import Console
from zetasql.api import Analyzer, CatalogBuilder, TableBuilder

from orchestration.errors import ApportionError
from orchestration.grants import ADMINS, Access, admins, grants, protected_tables, statements, team_access
from orchestration.publish.team_files import FOR_ALL, families, write_team_files
from orchestration.warehouse.settings import BigQuerySettings
from orchestration.workspace import BIGQUERY, Workspace
from tests.bigquery import google

TEAMS = [("research", None), ("nlp", "research"), ("vision", "research"), ("product", None), ("o'brien", "product")]
DAY = date(2026, 2, 1)
TABLE = "`books`.`apportion_reporting`.`rpt_job_receipts`"
FINOPS = ["group:finops@example.com"]


# --- a file per team ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(demo: Workspace) -> dict[str, Path]:
    return write_team_files(demo)


@pytest.fixture(scope="module")
def names(demo: Workspace) -> dict[str, set[str]]:
    """Of each team its id and every name."""
    found: dict[str, set[str]] = {}
    for team, name in _ask(
        demo.published / "marts.duckdb",
        "select distinct team_id, team_name from core.fct_team_days where not is_built_in",
    ):
        found.setdefault(team, {team}).add(name)
    return found


def _ask(file: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def _texts(file: Path) -> Iterator[tuple[str, str]]:
    """Every text in every column, and where it is."""
    with duckdb.connect(str(file), read_only=True) as connection:
        columns = connection.execute(
            """
            select schema_name, table_name, column_name from duckdb_columns()
            where data_type = 'VARCHAR' and not internal
            """
        ).fetchall()
        shared = {column for _, table, column in columns if table in FOR_ALL}
        for schema, table, column in columns:
            if column not in shared:
                texts = connection.execute(f'select distinct "{column}" from {schema}.{table}').fetchall()
                yield from ((f"{table}.{column}", text) for (text,) in texts if text is not None)


def test_there_is_a_file_for_every_team_and_none_for_the_built_in_payers(demo: Workspace, files, names):
    assert (
        files.keys()
        == names.keys()
        == {"research", "product", "nlp", "vision", "speech", "search", "assistant", "robotics"}
    )
    assert sorted(demo.published.glob("teams/*.duckdb*")) == sorted(files.values())


def test_no_other_team_is_named_anywhere_in_a_teams_file(demo: Workspace, files, names):
    below = {"research": {"nlp", "vision", "speech"}, "product": {"search", "assistant", "robotics"}}
    for team, file in files.items():
        others = {name for other in names.keys() - {team} - below.get(team, set()) for name in names[other]}
        pattern = re.compile("|".join(rf"(?<![^\W_]){re.escape(other)}(?![^\W_])" for other in others), re.IGNORECASE)
        assert [(place, text) for place, text in _texts(file) if pattern.search(text)] == []


def test_a_teams_file_has_its_own_money_to_the_last_digit(demo: Workspace, files: dict[str, Path]):
    sums = (
        "select currency, sum(total_cost), count(*) from reporting.rpt_team_costs_daily {} group by currency order by 1"
    )
    for team, file in files.items():
        within = {
            "research": ("research", "nlp", "vision", "speech"),
            "product": ("product", "search", "assistant", "robotics"),
        }
        listed = ", ".join(f"'{one}'" for one in within.get(team, (team,)))
        expected = _ask(demo.published / "marts.duckdb", sums.format(f"where team_id in ({listed})"))
        assert _ask(file, sums.format("")) == expected
        assert expected


def test_a_teams_file_has_every_report_with_a_team_and_nothing_that_belongs_to_others(demo: Workspace, files):
    tables = {name for (name,) in _ask(files["nlp"], "select table_name from duckdb_tables()")}
    assert tables >= {"rpt_team_costs_daily", "rpt_job_receipts", "rpt_fairness", "fct_invoice_lines", *FOR_ALL}
    assert tables.isdisjoint(
        {"dim_teams", "dim_pools", "fct_billed_costs", "fct_cost_allocations", "rpt_reconciliation"}
    )
    comments = _ask(files["nlp"], "select count(*) from duckdb_columns() where comment is null and not internal")
    assert comments == [(0,)]


def test_a_file_of_a_team_that_is_gone_is_removed(demo: Workspace, files: dict[str, Path]):
    gone = demo.published / "teams" / "gone.duckdb"
    gone.write_bytes(b"")
    page = demo.published / "teams" / "nlp.html"
    had_page = page.exists()
    grants(demo, apply=False, console=Console(quiet=True))
    assert not gone.exists()
    assert page.exists() == had_page


def test_a_family_is_a_team_and_all_below_it():
    assert families(TEAMS)["research"] == ["nlp", "research", "vision"]
    assert families(TEAMS)["nlp"] == ["nlp"]
    assert families([("a", "b"), ("b", "a")]) == {"a": ["a", "b"], "b": ["a", "b"]}


# --- statements for BigQuery -------------------------------------------------------------------------------


def access(team: str, principal: str, valid_from: str = "2026-01-01", valid_to: str | None = None) -> Access:
    return Access(team, principal, date.fromisoformat(valid_from), date.fromisoformat(valid_to) if valid_to else None)


ROWS = [
    access("research", "group:research@example.com"),
    access("nlp", "group:nlp@example.com"),
    access("nlp", "user:ana@example.com"),
    access("o'brien", "group:obrien@example.com"),
    access("vision", "user:left@example.com", valid_to="2026-02-01"),
    access("product", "user:coming@example.com", valid_from="2026-03-01"),
]


def test_each_team_sees_itself_and_those_below_and_the_owners_everything():
    found = list(statements([TABLE], ROWS, families(TEAMS), FINOPS, DAY))
    policies = {
        (tuple(re.findall(r"'([^']+@[^']+)'", one)), one.partition("filter using ")[2])
        for one in found
        if one.startswith("create or replace row access policy")
    }
    assert policies == {
        (("group:finops@example.com",), "(true)"),
        (("group:research@example.com",), "(team_id in ('nlp', 'research', 'vision'))"),
        (("group:nlp@example.com", "user:ana@example.com"), "(team_id in ('nlp'))"),
        (("group:obrien@example.com",), "(team_id in ('o\\'brien'))"),
    }
    assert found[0].startswith("create or replace row access policy apportion_all_rows")  # nobody is shut out meanwhile


def test_who_may_no_longer_or_not_yet_see_a_team_does_not():
    found = list(statements([TABLE], ROWS, families(TEAMS), FINOPS, DAY))
    dropped = {one.split()[6] for one in found if one.startswith("drop")}
    assert {re.sub(r"_[0-9a-f]{8}$", "", name) for name in dropped} == {
        "apportion_team_vision",
        "apportion_team_product",
    }
    (granted,) = (one for one in found if one.startswith("grant"))
    (revoked,) = (one for one in found if one.startswith("revoke"))
    assert "left@" not in granted
    assert "coming@" not in granted
    assert "user:left@example.com" in revoked


def test_every_statement_is_googlesql():
    table = TableBuilder("rpt").add_column("team_id", google.KINDS["string"]).build()
    catalog = CatalogBuilder("reporting").add_table(table).with_builtin_functions(google.FUNCTIONS).build()
    analyzer = Analyzer(google.OPTIONS, catalog)
    found = list(statements(["rpt"], ROWS, families(TEAMS), FINOPS, DAY))
    assert {one.split()[0] for one in found} == {"create", "drop", "grant", "revoke"}
    for statement in found:
        assert analyzer.analyze_statement(statement)


class Service:
    """Stands in for BigQuery: no emulator has row access policies."""

    def __init__(self) -> None:
        self.executed: list[str] = []

    def query(self, statement: str) -> Service:
        self.executed.append(statement)
        return self

    def result(self) -> None:
        return None


@pytest.mark.parametrize("apply", [False, True])
def test_statements_are_printed_and_executed_only_when_asked(project: Workspace, monkeypatch, apply: bool):
    service, out = Service(), io.StringIO()
    monkeypatch.setenv("APPORTION_BIGQUERY_PROJECT", "books")
    monkeypatch.setenv(ADMINS, FINOPS[0])
    monkeypatch.setattr("orchestration.warehouse.settings.client", lambda settings: service)
    parents = [(one.team_id, None) for one in team_access(project)]
    monkeypatch.setattr("orchestration.grants._families", lambda workspace: families(parents))
    grants(project.on(BIGQUERY), apply=apply, console=Console(file=out, width=200))
    printed = [line.removesuffix(";") for line in out.getvalue().splitlines() if line.endswith(";")]
    assert len([one for one in printed if "apportion_all_rows" in one]) == 5
    assert service.executed == (printed if apply else [])
    assert out.getvalue().rstrip().endswith("executed" if apply else "--apply does it")


def test_policies_are_put_on_the_reports_that_runs_change_in_place(project: Workspace):
    found = protected_tables(project, BigQuerySettings("books"))
    assert found == [
        f"`books`.`apportion_reporting`.`{name}`"
        for name in (
            "rpt_fairness",
            "rpt_job_receipts",
            "rpt_method_comparison",
            "rpt_method_costs_daily",
            "rpt_team_costs_daily",
        )
    ]


def test_the_projects_own_list_of_who_sees_what_can_be_read(project: Workspace):
    rows = team_access(project)
    assert {one.team_id for one in rows} == {
        *("research", "product", "nlp", "vision", "speech", "search", "assistant", "robotics"),
    }


# --- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("nlp,nlp@example.com,2026-01-01,,Why", "line 2: 'nlp@example.com' is no principal"),
        ('nlp,"group:a@b\') filter using (true",2026-01-01,,Why', "is no principal"),
        ("nlp,group:nlp@example.com,soon,,Why", "is no day"),
        ("nlp,group:nlp@example.com,2026-01-01,,", "the team or the reason is missing"),
        ("nlp,group:nlp@example.com,2026-01-01", "not as many cells as columns"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused_by_its_line(project: Workspace, tmp_path: Path, row: str, message: str):
    (tmp_path / "access").mkdir()
    (tmp_path / "access" / "team_access.csv").write_text(f"team_id,principal,valid_from,valid_to,reason\n{row}\n")
    with pytest.raises(ApportionError, match=re.escape(message)):
        team_access(replace(project, seeds=tmp_path))


def test_a_team_that_there_is_not_is_refused():
    with pytest.raises(ApportionError, match="names 'nobody', which is no team"):
        list(statements([TABLE], [access("nobody", "group:a@example.com")], families(TEAMS), FINOPS, DAY))


def test_without_owners_nothing_is_granted(demo: Workspace, monkeypatch: pytest.MonkeyPatch):
    """A table with policies and without owners would be empty for the very account that fills it."""
    monkeypatch.delenv(ADMINS, raising=False)
    with pytest.raises(ApportionError, match="does not say who keeps seeing every row"):
        admins({})
    with pytest.raises(ApportionError, match="'finops' is no principal"):
        admins({ADMINS: "finops"})
    assert admins({ADMINS: "group:a@b.c, user:d@e.f"}) == ["group:a@b.c", "user:d@e.f"]
    monkeypatch.setenv("APPORTION_BIGQUERY_PROJECT", "")
    with pytest.raises(ApportionError, match="APPORTION_BIGQUERY_PROJECT"):
        grants(demo.on(BIGQUERY), apply=False, console=Console(quiet=True))
