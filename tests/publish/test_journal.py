"""The journal's files: what is imported is what was closed, to the cent, whenever it is exported."""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import zipfile
from decimal import Decimal
from pathlib import Path

import pytest

from orchestration.errors import ApportionError
from orchestration.publish.journal import write_journals
from tests.publish.closed import Books


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


def postings(files: list[Path]) -> dict[str, list[dict[str, str]]]:
    return {file.stem: rows_of(file) for file in files if file.suffix == ".csv"}


def test_every_posting_balances_and_is_what_was_invoiced(books: Books) -> None:
    found = postings(write_journals(books.workspace))

    assert set(found) == {"APP-2026-03-EUR", "APP-2026-03-USD"}
    for posting, lines in found.items():
        for amounts in ("debit", "credit"), ("reporting_debit", "reporting_credit"):
            debit, credit = (sum(Decimal(line[name]) for line in lines) for name in amounts)
            assert debit == credit > 0, posting
        written = {line[name] for line in lines for name in ("debit", "credit", "reporting_debit", "reporting_credit")}
        assert all(re.fullmatch(r"\d+\.\d\d", amount) for amount in written), "two decimals, a dot, never a sign"
        assert [int(line["line_number"]) for line in lines] == list(range(1, len(lines) + 1))
        currency = posting[-3:]
        asked = books.rows("select invoice_id, invoiced_amount, currency from reporting.rpt_chargeback_invoices")
        invoices = {invoice: amount for invoice, amount, of in asked if of == currency}
        posted: dict[str, Decimal] = {}
        for line in lines:
            if line["side"] == "team":
                amount = Decimal(line["debit"]) - Decimal(line["credit"])
                posted[line["reference"]] = posted.get(line["reference"], Decimal(0)) + amount
        assert posted == invoices
        assert not any("vision" in line["reference"] for line in lines), "a team on showback is not posted"


def test_a_line_says_what_it_is(books: Books) -> None:
    books.change(
        """
        insert into reporting.rpt_journal_entries by name
        select * replace (line_number + 1000 as line_number, date '2026-02-01' as corrected_period_date)
        from reporting.rpt_journal_entries where project_id = 'llm' and component = 'gpu'
        """,
    )
    lines = postings(write_journals(books.workspace))["APP-2026-03-USD"]
    of_project = [line for line in lines if (line["project_id"], line["component"]) == ("llm", "gpu")]

    assert {line["text"] for line in of_project} == {
        "GPU, Language model, Language, March 2026",
        "GPU, Language model, Language, correction of February 2026",
    }
    team, platform = of_project[:2]
    assert (team["account"], team["cost_centre"], team["reference"]) == ("6500", "CC-2", "INV-2026-03-nlp-USD")
    assert (platform["account"], platform["cost_centre"]) == ("1990", "CC-0")
    assert (team["posting_date"], team["period"], team["tax_code"]) == ("2026-03-31", "2026-03", "")


def test_exported_again_it_is_the_same_byte_for_byte(books: Books) -> None:
    files = write_journals(books.workspace)
    before = {file: file.read_bytes() for file in files}
    for file in files:
        os.utime(file, (0, 0))
    assert write_journals(books.workspace) == files
    assert all(file.stat().st_mtime == 0 for file in files), "what is there already is left alone"

    shutil.rmtree(books.workspace.published / "journal")
    books.change("update core.dim_components set component_name = 'Renamed since'")
    write_journals(books.workspace)
    assert {file: file.read_bytes() for file in files} == before


def test_the_workbook_has_the_lines_and_checks_itself(books: Books) -> None:
    (file,) = (file for file in write_journals(books.workspace) if file.name == "APP-2026-03-USD.xlsx")
    with zipfile.ZipFile(file) as parts:
        journal, check = (parts.read(f"xl/worksheets/sheet{place}.xml").decode() for place in (1, 2))
        created = parts.read("docProps/core.xml").decode()
    ((lines, debit, credit, closed_at),) = books.rows(
        """
        select count(*), sum(debit), sum(credit), strftime(max(closed_at), '%Y-%m-%dT%H:%M:%SZ')
        from reporting.rpt_journal_entries where currency = 'USD'
        """
    )
    assert journal.count("<row ") == lines + 1
    assert "<f>" not in journal, "a sum is no line of a posting"
    shown = [Decimal(value) for value in re.findall(r"</f><v>([^<]*)</v>", check)]
    assert shown == [debit, credit, 0, *shown[3:5], 0]
    assert f">{closed_at}<" in created


def test_what_does_not_balance_is_not_written(books: Books) -> None:
    books.change(
        "update reporting.rpt_journal_entries set debit = debit + 0.01 where line_number = 1 and currency = 'USD'"
    )
    with pytest.raises(ApportionError, match=r"APP-2026-03-USD does not balance: debit − credit is 0\.01"):
        write_journals(books.workspace)


def test_without_a_closed_month_there_is_no_journal(books: Books) -> None:
    books.change("delete from reporting.rpt_journal_entries")
    assert write_journals(books.workspace) == []
