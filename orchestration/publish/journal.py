"""The journal of closed months as files that an ERP imports: a CSV and a workbook per posting.

`rpt_journal_entries` is the journal; here it is only written down. The layout is described in docs/chargeback.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from orchestration.errors import ApportionError
from orchestration.publish.steady import Book, csv_bytes, put, remove_leftovers
from orchestration.workspace import Workspace

# Everything comes from what the close has written down, and nothing from what is called otherwise today: a posting
# that is exported again has to be the same, byte for byte. Hence the component's code instead of its name in the seeds.
_LINES = """
    select
        posting_id,
        line_number,
        cast(closed_at as date) as document_date,
        posting_date,
        strftime(period_date, '%Y-%m') as period,
        currency,
        account,
        cost_centre,
        cast(debit as decimal(38, 2)) as debit,
        cast(credit as decimal(38, 2)) as credit,
        reporting_currency,
        reporting_rate,
        cast(reporting_debit as decimal(38, 2)) as reporting_debit,
        cast(reporting_credit as decimal(38, 2)) as reporting_credit,
        concat_ws(
            ', ',
            if(length(component) <= 3, upper(component), upper(component[1]) || component[2:]),
            project_name,
            team_name,
            if(corrected_period_date is null, '', 'correction of ')
            || strftime(coalesce(corrected_period_date, period_date), '%B %Y')
        ) as text,
        invoice_id as reference,
        cast(null as varchar) as tax_code,
        side,
        team_id,
        project_id,
        component,
        strftime(corrected_period_date, '%Y-%m') as corrected_period,
        close_number
    from reporting.rpt_journal_entries
    order by period_date, posting_id, line_number
"""

_POSTINGS = """
    select
        posting_id,
        strftime(period_date, '%Y-%m') as period,
        currency,
        reporting_currency,
        max(closed_at) as closed_at,
        count(*) as line_count,
        cast(sum(debit) as decimal(38, 2)) as debit,
        cast(sum(credit) as decimal(38, 2)) as credit,
        cast(sum(debit) - sum(credit) as decimal(38, 9)) as difference,
        cast(sum(reporting_debit) as decimal(38, 2)) as reporting_debit,
        cast(sum(reporting_credit) as decimal(38, 2)) as reporting_credit,
        cast(sum(reporting_debit) - sum(reporting_credit) as decimal(38, 9)) as reporting_difference,
        bool_or(
            debit <> round(debit, 2) or credit <> round(credit, 2)
            or reporting_debit <> round(reporting_debit, 2) or reporting_credit <> round(reporting_credit, 2)
            or least(debit, credit, reporting_debit, reporting_credit) < 0
        ) as is_odd
    from reporting.rpt_journal_entries
    group by posting_id, period_date, currency, reporting_currency
    order by period_date, posting_id
"""

_SHAPES = {
    **dict.fromkeys(("document_date", "posting_date"), "date"),
    **dict.fromkeys(("debit", "credit", "reporting_debit", "reporting_credit"), "cents"),
    "reporting_rate": "exact",
}


def write_journals(workspace: Workspace) -> list[Path]:
    """`published/journal/<YYYY-MM>/<posting>.csv` and `.xlsx` of all closed months, from the published marts.

    A file that says the same already is left alone. The caller holds the writer's lock.
    """
    marts = workspace.published / "marts.duckdb"
    if not marts.exists():
        raise ApportionError("there is no journal to write", "run `apportion run --from … --to …` first")
    with duckdb.connect(str(marts), read_only=True) as connection:
        if not _has_journal(connection):
            return []
        postings = _rows(connection, _POSTINGS)
        lines = _rows(connection, _LINES)
    by_posting: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_posting.setdefault(line["posting_id"], []).append(line)
    folder = workspace.published / "journal"
    remove_leftovers(folder)
    written = []
    for posting in postings:
        _require_balance(posting)
        own = by_posting[posting["posting_id"]]
        columns = list(own[0])
        rows = [list(line.values()) for line in own]
        name = quote(posting["posting_id"], safe=" ")
        for ending, content in (("csv", csv_bytes(columns, rows)), ("xlsx", _workbook(posting, columns, rows))):
            path = folder / posting["period"] / f"{name}.{ending}"
            put(path, content)
            written.append(path)
    return written


def _require_balance(posting: dict[str, Any]) -> None:
    """Two decimals must lose nothing, and both sides must be the same: a file that is posted cannot be taken back."""
    if posting["difference"] or posting["reporting_difference"] or posting["is_odd"]:
        raise ApportionError(
            f"the posting {posting['posting_id']} does not balance: debit − credit is {posting['difference']:f}"
            f" {posting['currency']} and {posting['reporting_difference']:f} {posting['reporting_currency']}",
            "it is a defect, or somebody changed the published file: `apportion verify` tells",
        )


def _workbook(posting: dict[str, Any], columns: list[str], rows: list[list[Any]]) -> bytes:
    """The lines as they are imported, and on a sheet of its own what they come to: a sum is no line of a posting.

    A spreadsheet has floating-point numbers: cents are shown exactly up to 10¹³. The CSV has no such limit.
    """
    book = Book(f"Journal {posting['posting_id']}", posting["closed_at"])
    book.sheet("journal", [(name, _SHAPES.get(name, "text")) for name in columns], rows)
    check = book.workbook.add_worksheet("check")
    last = len(rows) + 1
    check.write_string(0, 0, posting["posting_id"], book.formats["title"])
    for place, name in enumerate(("", "currency", "debit", "credit", "debit − credit")):
        check.write_string(2, place, name, book.formats["head"])
    for below, (label, prefix, currency) in enumerate(
        (("posting", "", posting["currency"]), ("reporting", "reporting_", posting["reporting_currency"])), start=3
    ):
        check.write_string(below, 0, label)
        check.write_string(below, 1, currency)
        for place, side in ((2, "debit"), (3, "credit")):
            letter = _letter(columns.index(prefix + side))
            formula = f"=ROUND(SUM(journal!{letter}2:{letter}{last}),2)"
            check.write_formula(below, place, formula, book.formats["cents"], float(posting[prefix + side]))
        check.write_formula(
            below, 4, f"=ROUND(C{below + 1}-D{below + 1},2)", book.formats["cents"],
            float(posting[prefix + "difference"]),
        )  # fmt: skip
    check.write_string(6, 0, "lines")
    check.write_number(6, 2, posting["line_count"])
    check.set_column(0, 4, 18)
    return book.finished()


def _letter(place: int) -> str:
    return chr(ord("A") + place)


def _has_journal(connection: duckdb.DuckDBPyConnection) -> bool:
    """Marts of before the ledger have none, which is no error."""
    return bool(
        connection.execute(
            "select 1 from duckdb_tables() where schema_name = 'reporting' and table_name = 'rpt_journal_entries'"
        ).fetchall()
    )


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
