"""Statements: the ledger's cents, today's reasons, and nobody else's name."""

from __future__ import annotations

import csv
import html
import io
import os
import re
import shutil
import zipfile
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import pytest

from orchestration.errors import ApportionError
from orchestration.publish.statements import write_statements
from orchestration.publish.statements.words import cents, change
from orchestration.workspace import Workspace
from tests.publish.closed import Books

NASTY = "</title><script>alert(1)</script> \"quoted\" 'it' & =1+1"


def text_of(books: Books, team: str, month: str = "2026-03") -> str:
    return (books.workspace.published / "statements" / month / f"{team}.html").read_text(encoding="utf-8")


def section(page: str, name: str) -> str:
    """What a person reads of it."""
    (found,) = re.findall(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", found)))


def cells(path: Path, sheet: int) -> list[list[str]]:
    """A workbook without the library that wrote it."""
    space = {"x": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(path) as parts:
        strings = ElementTree.fromstring(parts.read("xl/sharedStrings.xml"))
        shared = ["".join(item.itertext()) for item in strings.findall("x:si", space)]
        rows = ElementTree.fromstring(parts.read(f"xl/worksheets/sheet{sheet}.xml")).findall(".//x:row", space)
    return [
        [
            shared[int(cell.findtext("x:v", "", space))] if cell.get("t") == "s" else cell.findtext("x:v", "", space)
            for cell in row.findall("x:c", space)
        ]
        for row in rows
    ]


def test_every_payer_gets_a_statement_whose_figures_are_those_of_the_ledger(books: Books) -> None:
    made = write_statements(books.workspace)
    teams = [team for (team,) in books.rows("select distinct team_id from core.fct_invoice_lines order by 1")]
    assert {"platform", "unattributed"} <= set(teams)
    assert {path.name for path in made.written} == {
        f"{team}.{end}" for team in teams for end in ("html", "xlsx", "csv")
    }

    for team in teams:
        page = text_of(books, team)
        for currency, invoiced in books.rows(
            f"select currency, sum(invoiced_amount) from core.fct_invoice_lines where team_id = '{team}' group by all"
        ):
            assert f'<span id="total-{currency}">{cents(invoiced)}</span>' in page
            for dimension in ("component", "project", "kind"):
                assert f"Total {cents(invoiced)}" in section(page, f"by-{dimension}")
        for name, column in (("component", "component_name"), ("kind", None)):
            parts = books.rows(
                f"""
                select {column or "''"}, sum(invoiced_amount)
                from core.fct_invoice_lines left join core.dim_components using (component)
                where team_id = '{team}' group by currency, {column or "allocation_kind"}
                """
            )
            shown = section(page, f"by-{name}")
            assert all(f"{part} {cents(amount)}" in shown for part, amount in parts if column), shown
            assert all(cents(amount) in shown for _, amount in parts)
        for invoice, mode, centre in books.rows(
            f"select invoice_id, billing_mode, cost_centre from core.fct_invoice_lines where team_id = '{team}'"
        ):
            documents = section(page, "documents").lower()
            assert invoice.lower() in documents
            assert mode in documents
            assert (centre or "–").lower() in documents


def test_the_csv_has_every_line_with_every_decimal(books: Books) -> None:
    write_statements(books.workspace)
    file = books.workspace.published / "statements" / "2026-03" / "nlp.csv"
    found = list(csv.DictReader(io.StringIO(file.read_text(encoding="utf-8"))))
    lines = books.rows(
        """
        select invoice_id, coalesce(project_id, ''), component, allocation_kind, cast(amount as varchar),
            cast(cast(invoiced_amount as decimal(38, 2)) as varchar), content_hash
        from core.fct_invoice_lines where team_id = 'nlp' order by all
        """
    )
    names = ("invoice_id", "project_id", "component", "allocation_kind", "amount", "invoiced_amount", "content_hash")
    assert sorted(tuple(line[name] for name in names) for line in found) == lines
    assert {(line["state"], line["explain"]) for line in found} == {
        ("closed", "apportion explain team nlp --month 2026-03")
    }


def test_the_workbook_has_summary_lines_jobs_and_rates(books: Books) -> None:
    write_statements(books.workspace)
    file = books.workspace.published / "statements" / "2026-03" / "nlp.xlsx"
    with zipfile.ZipFile(file) as parts:
        names = re.findall(r'<sheet name="(\w+)"', parts.read("xl/workbook.xml").decode())
    assert names == ["summary", "lines", "jobs", "rates"]
    summary, lines, jobs, rates = (cells(file, place) for place in (1, 2, 3, 4))
    ((count, total),) = books.rows(
        "select count(*), sum(invoiced_amount) from core.fct_invoice_lines where team_id = 'nlp' and currency = 'USD'"
    )
    at = lines[0].index("invoice_id")
    assert sum(line[at] == "INV-2026-03-nlp-USD" for line in lines[1:]) == count
    assert any(row[0] == "INV-2026-03-nlp-USD" and f"{float(total):.16G}" in row for row in summary if row)
    assert all(row[-1].startswith("apportion explain job ") for row in jobs[1:])
    assert len(jobs) > 1
    assert {row[-1] for row in rates[1:]} == {
        f"apportion explain team nlp --month 2026-03 --pool {pool}" for pool in {row[0] for row in rates[1:]}
    }


def test_idle_jobs_and_rates_are_those_of_the_books(books: Books) -> None:
    write_statements(books.workspace)
    page = text_of(books, "nlp")
    idle = section(page, "idle")
    for amount, reason, policy_reason in books.rows(
        """
        select sum(amount), costs.reason, policies.reason
        from core.fct_cost_allocations as costs inner join core.dim_policies as policies using (policy_row)
        where team_id = 'nlp' and allocation_kind = 'idle'
        group by idle_cause, pool_id, costs.reason, policies.reason, currency
        """
    ):
        assert cents(amount) in idle
        assert reason in idle
        assert policy_reason in idle
    assert "apportion explain team nlp --month 2026-03 --pool gpu" in idle
    jobs = section(page, "jobs")
    for key, total, waste in books.rows(
        """
        select job_key, sum(total_cost), sum(held_idle_cost) from reporting.rpt_job_receipts
        where team_id = 'nlp' group by job_key, currency having sum(held_idle_cost) > 0
        """
    ):
        assert f"apportion explain job {key}" in jobs
        assert cents(total) in jobs
        assert cents(waste) in jobs
    rates = section(page, "rates")
    for component, rate in books.rows(
        """
        select component, sum(cost) / sum(capacity_hours) from core.fct_pool_hours
        where rate is not null and (pool_id, component, currency) in (
            select (pool_id, component, currency) from core.fct_cost_allocations where team_id = 'nlp'
        )
        group by pool_id, component, currency
        """
    ):
        assert f"{rate:,.{4 if component in ('gpu', 'energy') else 6}f}" in rates


def test_an_open_month_is_a_draft_that_is_compared_with_the_closed_one_and_shows_true_ups(books: Books) -> None:
    books.open_april()
    write_statements(books.workspace)
    page = text_of(books, "nlp", "2026-04")

    assert "Nothing of this is final" in page
    assert '<meta name="apportion-state" content="draft">' in page
    true_ups = section(page, "true-ups")
    assert "March 2026 restated bill (1 days) GPU Language model −0.01" in true_ups
    assert "apportion explain team nlp --month 2026-03" in true_ups
    ((total, before),) = books.rows(
        """
        select
            (select sum(invoiced_amount) from reporting.rpt_open_invoice_lines where invoice_id like '%nlp-USD'),
            (select sum(invoiced_amount) from core.fct_invoice_lines where invoice_id like '%nlp-USD')
        """
    )
    assert total - before == Decimal("-0.01")
    assert f"Total {cents(total)} {cents(before)} {change(total - before)}" in section(page, "by-kind")
    assert "True-ups" in section(page, "by-kind")
    assert "True-ups" not in section(text_of(books, "nlp"), "by-kind")


def test_a_switch_of_the_mode_shows_both_parts(books: Books) -> None:
    books.change(
        """
        update core.fct_invoice_lines set billing_mode = 'showback', invoice_id = replace(invoice_id, 'INV', 'STM')
        where team_id = 'nlp' and component = 'gpu'
        """
    )
    write_statements(books.workspace)
    documents = section(text_of(books, "nlp"), "documents")
    for invoice, amount in books.rows(
        "select invoice_id, sum(invoiced_amount) from core.fct_invoice_lines where team_id = 'nlp' group by 1"
    ):
        assert invoice in documents
        assert cents(amount) in documents
    assert "INV-2026-03-nlp-USD" in documents
    assert "STM-2026-03-nlp-USD" in documents
    assert "The billing mode changed within the month" in documents


def test_a_closed_month_stays_as_it_was_written_whatever_the_books_say_later(books: Books) -> None:
    books.open_april()
    first = write_statements(books.workspace)
    before = {path: path.read_bytes() for path in first.written}
    for path in first.written:
        os.utime(path, (0, 0))
    books.change(
        "update core.fct_cost_allocations set amount = amount + 1 where team_id = 'nlp' and allocation_kind = 'direct'"
    )
    again = write_statements(books.workspace)
    assert again.written == []
    assert again.kept == len(before)
    assert all(path.read_bytes() == content and path.stat().st_mtime == 0 for path, content in before.items())

    # A file that is lost is made again, and says that its detail is no longer that of the close.
    lost = books.workspace.published / "statements" / "2026-03" / "nlp.html"
    lost.unlink()
    spoiled = lost.with_name("vision.csv")
    spoiled.write_bytes(b"changed by somebody")
    assert set(write_statements(books.workspace).written) == {lost, spoiled}
    assert spoiled.read_bytes() == before[spoiled]
    page = text_of(books, "nlp")
    assert "As computed now." in page
    assert b"As computed now." not in before[lost]
    assert section(page, "by-kind") == section(before[lost].decode(), "by-kind"), "what was charged is what it was"


def test_the_same_books_give_the_same_bytes(books: Books) -> None:
    books.open_april()
    before = {path: path.read_bytes() for path in write_statements(books.workspace).written}
    shutil.rmtree(books.workspace.published / "statements")
    assert {path: path.read_bytes() for path in write_statements(books.workspace).written} == before


def test_hostile_names_are_only_text(books: Books) -> None:
    quoted = NASTY.replace("'", "''")
    books.change(
        f"update core.fct_invoice_lines set team_name = '{quoted}', project_name = '{quoted}' where team_id = 'nlp'",
        f"update reporting.rpt_job_receipts set job_name = '{quoted}', user_name = '{quoted}'",
        f"update core.fct_cost_allocations set reason = '{quoted}'",
        "update core.fct_invoice_lines set team_id = '../../up; rm -rf' where team_id = 'speech'",
    )
    made = write_statements(books.workspace)
    page = text_of(books, "nlp")
    assert "<script" not in page
    assert html.escape(NASTY, quote=False)[:20] in page
    assert r"\00003c\00002ftitle\00003e" in page[page.index("<style>") : page.index("</style>")], "in the footer, too"
    for row in cells(made.folder / "2026-03" / "nlp.xlsx", 3)[1:]:
        assert NASTY in row
    with zipfile.ZipFile(made.folder / "2026-03" / "nlp.xlsx") as parts:
        assert not any(b"<f>" in parts.read(name) for name in parts.namelist()), "no name becomes a formula"
    (outside,) = (path for path in made.written if "rm -rf" in path.name and path.suffix == ".html")
    assert outside.parent == made.folder / "2026-03"
    assert "apportion explain team &#39;../../up; rm -rf&#39; --month" in outside.read_text(encoding="utf-8")


def test_other_teams_are_named_only_where_a_transfer_names_them(books: Books) -> None:
    books.change(
        "update reporting.rpt_job_receipts set job_name = 'port of vision to Speech'",
        "update core.dim_policies set reason = 'Vision asked for it' where seed_name = 'idle_policies'",
        """
        insert into core.fct_cost_allocations by name
        select * replace ('adjustment' as allocation_kind, null as idle_cause,
            'Vision ordered it from Language' as reason, null as policy_row,
            'vision' as counterparty_team_id, -5 as amount)
        from core.fct_cost_allocations where team_id = 'nlp' limit 1
        """,
    )
    made = write_statements(books.workspace)
    page = text_of(books, "nlp")
    assert "Vision ordered it from Language Vision −5.00" in section(page, "transfers")
    rest = page.replace(re.findall(r'<section id="transfers">.*?</section>', page, re.DOTALL)[0], "")
    assert not re.search(r"\b(vision|speech)\b", rest, re.IGNORECASE)
    assert "port of ••• to •••" in rest
    assert not re.search(rb"vision|speech", (made.folder / "2026-03" / "nlp.csv").read_bytes(), re.IGNORECASE)


def test_drafts_of_months_and_teams_that_are_gone_are_removed(books: Books) -> None:
    books.open_april()
    made = write_statements(books.workspace)
    note = made.folder / "2026-04" / "note.txt"
    note.write_text("somebody's own")
    books.change("delete from reporting.rpt_open_invoice_lines where team_id = 'speech'")
    write_statements(books.workspace)
    assert not (made.folder / "2026-04" / "speech.html").exists()
    assert (made.folder / "2026-03" / "speech.html").exists()
    books.change("delete from reporting.rpt_open_invoice_lines")
    write_statements(books.workspace)
    assert list((made.folder / "2026-04").iterdir()) == [note]


def test_without_marts_the_remedy_is_named(tmp_path: Path, closed: Workspace) -> None:
    with pytest.raises(ApportionError, match="nothing to make statements of"):
        write_statements(Workspace(closed.sources_file, closed.seeds, tmp_path))
