"""A statement as data: the CSV has every line with every decimal, the workbook is for those who reckon on."""

from __future__ import annotations

from typing import Any

from orchestration.publish.statements import words
from orchestration.publish.statements.figures import Row, Statement
from orchestration.publish.steady import Book, csv_bytes

_LINES = [
    ("invoice_id", "text"), ("billing_mode", "text"), ("cost_centre", "text"), ("project_id", "text"),
    ("project_name", "text"), ("component", "text"), ("allocation_kind", "text"), ("corrected_period", "text"),
    ("cause", "text"), ("currency", "text"), ("amount", "exact"), ("invoiced_amount", "cents"),
    ("reporting_currency", "text"), ("reporting_rate", "exact"), ("reporting_amount", "cents"),
]  # fmt: skip
_JOBS = [
    ("job_key", "text"), ("job_name", "text"), ("user_name", "text"), ("project_name", "text"),
    ("pool_names", "text"), ("workload_class", "text"), ("state", "text"), ("gpu_hours", "hours"),
    ("busy_share", "share"), ("currency", "text"), ("total_cost", "cents"), ("held_idle_cost", "cents"),
]  # fmt: skip
_RATES = [
    ("pool_id", "text"), ("pool_name", "text"), ("gpu_model", "text"), ("component", "text"), ("methods", "text"),
    ("currency", "text"), ("mean_rate", "rate"), ("lowest_rate", "rate"), ("highest_rate", "rate"),
]  # fmt: skip
_BREAKDOWN = [
    ("by", "text"), ("part", "text"), ("currency", "text"), ("amount", "cents"), ("month before", "cents"),
    ("change", "cents"), ("share in %", "hours"), ("in nine decimals", "exact"),
]  # fmt: skip
_DOCUMENTS = [
    ("number", "text"), ("billing mode", "text"), ("cost centre", "text"), ("currency", "text"), ("the month", "cents"),
    ("true-ups", "cents"), ("total", "total"), ("reporting currency", "text"), ("rate", "exact"),
    ("in reporting currency", "cents"), ("lines", "text"),
]  # fmt: skip
_WITHHELD = ("project_name", "job_name", "user_name", "pool_names", "pool_name", "cause", "override_reason")
"""Text that people write, in which another team may be named."""


def csv_of(statement: Statement) -> bytes:
    """One row per line: all that the ledger has of it."""
    lines = statement["lines"]
    explain = words.explain_team(statement.team_id, statement.period.name)
    columns = [*lines[0], "explain"]
    return csv_bytes(columns, ([*_shown(statement, line).values(), explain] for line in lines))


def xlsx_of(statement: Statement) -> bytes:
    team, period = statement.team, statement.period
    book = Book(f"Statement {team['team_name']} {period.name}", statement.made_at)
    _summary(book, statement)
    explain = words.explain_team(team["team_id"], period.name)
    _sheet(book, "lines", _LINES, statement, statement["lines"], lambda _: explain)
    _sheet(book, "jobs", _JOBS, statement, statement["jobs"], lambda job: _explain_job(statement, job))
    _sheet(
        book, "rates", _RATES, statement, statement["rates"],
        lambda rate: words.explain_team(team["team_id"], period.name, rate["pool_id"]),
    )  # fmt: skip
    return book.finished()


def _summary(book: Book, statement: Statement) -> None:
    team, sheet = statement.team, book.workbook.add_worksheet("summary")
    sheet.write_string(0, 0, f"{team['team_name']}, {words.month(statement.period.month)}", book.formats["title"])
    state = (
        f"closed by {team['closed_by']} at {team['closed_at']:%Y-%m-%d %H:%M} UTC, {team['content_hash']}"
        if team["is_closed"]
        else f"draft: {team['day_count']} of {team['month_days']} days are in, and nothing of it is final"
    )
    sheet.write_string(1, 0, state, book.formats["soft"])
    below = 3
    documents = [
        [row["invoice_id"], row["billing_mode"], row["cost_centres"], row["currency"], row["own_amount"],
         row["true_up_amount"], row["invoiced_amount"], row["reporting_currency"], row["reporting_rate"],
         row["reporting_amount"], str(row["line_count"])]
        for row in statement["documents"]
    ]  # fmt: skip
    below = book.table(sheet, below, _DOCUMENTS, documents) + 1
    parts = [
        [row["dimension"], part_name(statement, row), row["currency"], row["invoiced_amount"], row["before_amount"],
         row["change_amount"], row["percent"], row["amount"]]
        for row in statement["breakdown"]
    ]  # fmt: skip
    book.table(sheet, below, _BREAKDOWN, parts)


def _sheet(
    book: Book, name: str, columns: list[tuple[str, str]], statement: Statement, rows: list[Row], explain: Any
) -> None:
    names = [column for column, _ in columns]
    shown = ((_shown(statement, row), explain(row)) for row in rows)
    book.sheet(name, [*columns, ("explain", "text")], ([*(row[name] for name in names), told] for row, told in shown))


def part_name(statement: Statement, row: Row) -> str:
    if row["dimension"] == "kind":
        return words.KINDS.get(row["part"], (row["part"], ""))[0]
    if row["dimension"] == "project":
        return statement.names.shown(row["part_name"]) or "No project"
    return row["part_name"]


def _explain_job(statement: Statement, job: Row) -> str | None:
    """A key is to be typed: one from which a name is taken out helps nobody."""
    return words.explain_job(job["job_key"]) if statement.names.is_clean(job["job_key"]) else None


def _shown(statement: Statement, row: Row) -> Row:
    shown = {name: statement.names.shown(row[name]) for name in _WITHHELD if name in row}
    if "job_key" in row and not statement.names.is_clean(row["job_key"]):
        shown["job_key"] = None
    return {**row, **shown}
