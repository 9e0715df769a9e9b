"""Closing a month of a small real company: what keeps it from closing, what a close is, and that it stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from orchestration.dbt import environment_of
from orchestration.defs import definitions_of
from orchestration.errors import ApportionError
from orchestration.ledger.book import closes
from orchestration.ledger.close import ChecksFailed, close_month, show
from orchestration.ledger.verify import verify
from orchestration.runs import instance_of
from orchestration.workspace import Workspace
from tests.warehouses import GOLDEN, finish, land_and_build, run, start

MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 1)
DESPITE = "only one day of the golden month is built"
BILL = "focus_2026-03_20260406T060000Z.csv"


def copied(workspace: Workspace, root: Path) -> Workspace:
    """With everything that was made of it."""
    shutil.copytree(workspace.sources_file.parent, root, dirs_exist_ok=True, symlinks=True)
    return Workspace(root / "sources.yml", root / "seeds", root / "data")


@pytest.fixture
def company(golden: Workspace, tmp_path: Path) -> Workspace:
    return copied(golden, tmp_path)


@pytest.fixture(scope="module")
def closed(golden: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """March is closed, by command."""
    workspace = copied(golden, tmp_path_factory.mktemp("closed"))
    finish(start(workspace, "close", "2026-03", "--override", DESPITE))
    return workspace


def lines(workspace: Workspace) -> list[tuple]:
    return ask(workspace, "from core.fct_invoice_lines order by all")


def ask(workspace: Workspace, sql: str) -> list[tuple]:
    with duckdb.connect(str(workspace.warehouse), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def true_ups(workspace: Workspace) -> dict[str, Decimal]:
    found = ask(
        workspace,
        "select team_id, sum(amount) from reporting.rpt_open_invoice_lines where corrected_period_date is not null"
        " group by team_id",
    )
    return dict(found)


def by_team(workspace: Workspace, table: str) -> dict[str, Decimal]:
    return dict(ask(workspace, f"select team_id, sum(amount) from {table} group by 1"))


def causes(workspace: Workspace) -> set[tuple]:
    return set(
        ask(
            workspace,
            "select period_date, corrected_period_date, cause from reporting.rpt_open_invoice_lines"
            " where allocation_kind = 'true_up'",
        )
    )


def restate(workspace: Workspace) -> Decimal:
    """The provider delivers March again: storage costs more. Returns by how much."""
    folder = workspace.sources_file.parent / "inbox" / "focus"
    text = (folder / BILL).read_text(encoding="utf-8")
    assert text.count("\n4.00,") == 1
    restated = text.replace("\n4.00,", "\n4.75,").replace("4.00,4.00,Nebula,llm-data", "4.75,4.75,Nebula,llm-data")
    (folder / BILL.replace("20260406", "20260409")).write_text(restated, encoding="utf-8")
    return Decimal("0.75")


# --- before a close ------------------------------------------------------------------------------------------


def test_what_keeps_a_month_from_closing_is_listed_and_nothing_is_written(company: Workspace) -> None:
    seeds = company.seeds / "policy"
    with (seeds / "closing_limits.csv").open("a", encoding="utf-8") as file:
        file.write("unattributed_share,0,2026-01-01,,Everything has an owner\n")
    with (seeds / "invoice_totals.csv").open("a", encoding="utf-8") as file:
        file.write("Nebula,Nebula-2026-03,USD,400.00,M. Keller,As printed\n")
    land_and_build(company, GOLDEN)
    with pytest.raises(ChecksFailed) as refused:
        close_month(company, MARCH)
    failed = {check.name: check.problem for check in refused.value.checks if not check.passed}
    assert failed.keys() == {
        "every day of the month is built",
        "the books tie to the providers' invoices",
        "the unattributed share is under its limit",
    }
    assert failed["every day of the month is built"].startswith("30 days are not: 2026-03-01 up to 2026-03-10")
    assert "Nebula-2026-03: 400.000000000 USD on the invoice" in failed["the books tie to the providers' invoices"]
    assert closes(company.data) == []
    assert lines(company) == []


def test_a_month_is_not_closed_over_days_that_have_changed_since_they_were_built(company: Workspace) -> None:
    with (company.seeds / "policy" / "teams.csv").open("a", encoding="utf-8") as file:
        file.write("maps,Maps,,CC-9,1,2026-03-01,,New\n")
    with pytest.raises(ChecksFailed, match="inputs or policy of 1 days have: 2026-03-10"):
        close_month(company, MARCH)


# --- a close -------------------------------------------------------------------------------------------------


def test_a_close_says_who_when_why_and_from_what(closed: Workspace) -> None:
    (close,) = closes(closed.data)
    assert close.header["override_reason"] == DESPITE
    assert list(close.header["failed_checks"]) == ["every day of the month is built"]
    rows = ask(
        closed,
        "select distinct close_number, period_date, invoice_version, closed_by, override_reason, policy_version,"
        " delivery_hashes, content_hash, previous_hash from core.fct_invoice_lines",
    )
    ((number, period, version, who, why, policy, deliveries, content, previous),) = rows
    assert (number, period, version, why, previous) == (1, MARCH, 1, DESPITE, None)
    assert who == close.header["closed_by"]
    assert policy == close.header["policy_version"]
    assert content == close.content_hash
    bills = ask(closed, "select content_hash from core.raw_deliveries where table_name = 'charges'")
    assert set(deliveries.split(",")) == {content_hash for (content_hash,) in bills}


def test_lines_add_up_to_the_invoice_invoices_to_the_month_and_the_month_to_the_books(closed: Workspace) -> None:
    books = dict(ask(closed, "select currency, sum(amount) from core.fct_cost_allocations group by 1"))
    told = ask(closed, "select currency, sum(amount), sum(invoiced_amount) from core.fct_invoice_lines group by 1")
    assert {currency: amount for currency, amount, _ in told} == books
    assert {currency: cents for currency, _, cents in told} == {
        currency: Decimal(f"{amount:.2f}") for currency, amount in books.items()
    }
    modes = dict(ask(closed, "select distinct team_id, billing_mode from core.fct_invoice_lines"))
    assert modes == {
        "nlp": "chargeback",
        "speech": "chargeback",
        "vision": "showback",
        "platform": "showback",
        "unattributed": "showback",
    }
    invoices = dict(
        ask(closed, "select team_id, sum(invoiced_amount) from reporting.rpt_chargeback_invoices group by 1")
    )
    posted = dict(
        ask(
            closed,
            "select team_id, sum(debit) - sum(credit) from reporting.rpt_journal_entries where side = 'team'"
            " group by team_id",
        )
    )
    assert invoices == posted
    assert invoices.keys() == {"nlp", "speech"}
    assert ask(closed, "select sum(debit) - sum(credit) from reporting.rpt_journal_entries") == [(0,)]


def test_a_month_is_closed_once_and_the_next_one_is_the_next_one(closed: Workspace) -> None:
    with pytest.raises(ApportionError, match="2026-03 is closed already"):
        close_month(closed, MARCH, override="again")
    with pytest.raises(ApportionError, match="cannot be closed: the last closed month is 2026-03"):
        close_month(closed, date(2026, 5, 1), override="ahead")
    with pytest.raises(ApportionError, match="the last closed month is 2026-03"):
        close_month(closed, date(2026, 2, 1), override="behind")
    assert len(closes(closed.data)) == 1


def test_dagster_closes_a_month_with_the_same_lines(closed: Workspace, company: Workspace) -> None:
    with environment_of(company), instance_of(company) as instance:
        job = definitions_of(company).resolve_job_def("close_month")
        config = {"ops": {"close": {"config": {"month": "2026-03", "override": DESPITE, "closed_by": "finance"}}}}
        assert job.execute_in_process(instance=instance, run_config=config).success
    (here,), (there,) = closes(company.data), closes(closed.data)
    assert (here.folder / "lines.csv").read_bytes() == (there.folder / "lines.csv").read_bytes()
    assert here.header["closed_by"] == "finance"


# --- after a close -------------------------------------------------------------------------------------------


@pytest.fixture
def later(closed: Workspace, tmp_path: Path) -> Workspace:
    return copied(closed, tmp_path)


@pytest.fixture
def unchanged(later: Workspace) -> Iterator[None]:
    """Whatever the test does, closed lines are the same before and after it, in the ledger and in the warehouse."""
    (close,) = closes(later.data)
    files = {file.name: file.read_bytes() for file in close.folder.iterdir()}
    before = lines(later)
    yield
    assert {file.name: file.read_bytes() for file in close.folder.iterdir()} == files
    assert lines(later) == before


@pytest.mark.usefixtures("unchanged")
def test_a_full_rebuild_and_a_backfill_change_nothing(later: Workspace) -> None:
    later.warehouse.unlink()
    run(later, GOLDEN)
    assert true_ups(later) == {}
    run(later, GOLDEN)
    assert true_ups(later) == {}
    assert verify(later) == []


@pytest.mark.usefixtures("unchanged")
def test_a_restated_bill_becomes_a_true_up_of_the_open_month_and_is_charged_once(later: Workspace) -> None:
    charged = by_team(later, "core.fct_invoice_lines")
    more = restate(later)
    run(later, GOLDEN)
    corrected = true_ups(later)
    booked = by_team(later, "core.fct_cost_allocations")
    assert corrected == {team: booked[team] - charged[team] for team in booked if booked[team] != charged[team]}
    assert sum(corrected.values()) == more
    assert max(corrected, key=corrected.__getitem__) == "nlp"
    assert causes(later) == {(APRIL, MARCH, "restated bill (1 days)")}
    close_month(later, APRIL, override="nothing of April is built")
    assert true_ups(later) == {}
    told = ask(
        later, "select allocation_kind, sum(amount) from core.fct_invoice_lines where close_number = 2 group by 1"
    )
    assert told == [("true_up", more)]
    assert by_team(later, "core.fct_invoice_lines") == booked
    assert verify(later) == []
    # What is closed now includes it, so going back is a difference again.
    (later.sources_file.parent / "inbox" / "focus" / BILL.replace("20260406", "20260409")).unlink()
    run(later, GOLDEN)
    assert true_ups(later) == {team: -amount for team, amount in corrected.items()}
    with duckdb.connect(str(later.warehouse)) as connection:  # as `unchanged` found it
        connection.execute("delete from core.fct_invoice_lines where close_number = 2")


@pytest.mark.usefixtures("unchanged")
def test_policy_reaches_into_a_closed_month_only_with_a_reason(later: Workspace) -> None:
    rules = later.seeds / "policy" / "payer_rules.csv"
    rules.write_text(
        rules.read_text(encoding="utf-8").replace("30,,speech,,,,,,speech,,", "30,,speech,,,,,,vision,,"),
        encoding="utf-8",
    )
    days = ("--from", str(GOLDEN.start), "--to", str(GOLDEN.end))
    refused = start(later, "run", *days)
    said, _ = refused.communicate(timeout=240)
    assert refused.returncode == 1
    assert "the policy of 1 days of closed months (2026-03) has changed: 2026-03-10" in said
    assert true_ups(later) == {}
    finish(start(later, "run", *days, "--retroactive", "Speech belongs to Vision since January"))
    moved = true_ups(later)
    assert moved["speech"] < 0 < moved["vision"]
    assert sum(moved.values()) == 0
    assert causes(later) == {(APRIL, MARCH, "changed policy (1 days): Speech belongs to Vision since January")}
    finish(start(later, "run", *days))  # the reason counts until the next close


# --- tampering -----------------------------------------------------------------------------------------------


def test_a_line_that_was_tampered_with_in_the_warehouse_is_found(later: Workspace) -> None:
    assert verify(later) == []
    with duckdb.connect(str(later.warehouse)) as connection:
        connection.execute("update core.fct_invoice_lines set amount = amount + 0.000000001 where team_id = 'vision'")
    assert any("the warehouse: STM-2026-03-vision" in one for one in verify(later))
    show(later)
    assert verify(later) == []


@pytest.mark.parametrize("file", ["lines.csv", "days.csv", "header.json", "hash.txt"])
def test_a_file_of_the_ledger_that_was_tampered_with_is_found_and_nothing_is_built_on_it(
    later: Workspace, file: str
) -> None:
    (close,) = closes(later.data)
    target = close.folder / file
    target.write_text(target.read_text(encoding="utf-8").replace("1", "2", 1), encoding="utf-8")
    process = start(later, "verify")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "0001-2026-03 was changed after it was closed" in said or "cannot be read" in said
    with pytest.raises(ApportionError):
        show(later)


def test_a_close_that_is_missing_is_found(later: Workspace) -> None:
    close_month(later, APRIL, override="nothing of April is built")
    first, second = closes(later.data)
    shutil.rmtree(first.folder)
    assert any("close 1 is missing" in one for one in verify(later))
    header = json.loads((second.folder / "header.json").read_text(encoding="utf-8"))
    assert header["previous_hash"] == first.content_hash
