"""What closing and verifying say on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orchestration.ledger.book import closes, folder_of
from orchestration.ledger.checks import Check, notes
from orchestration.ledger.close import close_month, prepare_closing
from orchestration.ledger.months import named, next_month
from orchestration.ledger.verify import verify
from orchestration.warehouse.target import reading
from orchestration.workspace import Workspace


def print_closing(workspace: Workspace, period: date, console: Console) -> bool:
    """What a close would do, without doing it; returns whether it could."""
    with workspace.writing():
        closing = prepare_closing(workspace, period)
        with reading(workspace) as ask:
            remarks = notes(ask, period)
    _print_checks(closing.checks, remarks, console)
    _print_invoices(closing.lines, console)
    _print_true_ups(closing.lines, console)
    return not closing.failed


def close_and_print(workspace: Workspace, period: date, override: str | None, console: Console) -> None:
    close = close_month(workspace, period, override=override)
    lines = [{**row, "invoiced_amount": Decimal(row["invoiced_amount"])} for row in close.lines]
    _print_invoices(lines, console)
    _print_true_ups(lines, console)
    console.print(
        f"{named(period)} is closed by {escape(close.header['closed_by'])}: {len(lines):,} lines,"
        f" hash {close.content_hash[:16]}… → {close.folder}",
        soft_wrap=True,
    )
    for name, problem in close.header["failed_checks"].items():
        console.print(f"[yellow]![/] {escape(name)}: {escape(problem)}", soft_wrap=True)
    if close.header["override_reason"]:
        console.print(f"  overridden: {escape(close.header['override_reason'])}", soft_wrap=True)


def print_verification(workspace: Workspace, console: Console) -> bool:
    with workspace.writing():
        wrong, made = verify(workspace), closes(workspace.data)
    for one in wrong:
        console.print(f"[bold red]✗[/] {escape(one)}", soft_wrap=True)
    if wrong:
        console.print(
            f"  [bold]→[/] bring {folder_of(workspace.data)} back from a backup if it is named; a warehouse or"
            " a published copy is put right by the next run",
            soft_wrap=True,
        )
    elif not made:
        console.print("no month is closed yet")
    else:
        console.print(
            f"[green]✓[/] {len(made)} closes from {named(made[0].period)} to {named(made[-1].period)} are what they"
            f" were; the chain ends with {made[-1].content_hash}",
            soft_wrap=True,
        )
    return not wrong


def print_open_true_ups(workspace: Workspace, console: Console) -> None:
    """What closed months would be charged today beyond what they were charged."""
    made = closes(workspace.data)
    if not made:
        return
    period = next_month(made[-1].period)
    with workspace.writing(), reading(workspace) as ask:
        lines = ask.named(
            "select * from reporting.rpt_open_invoice_lines"
            f" where period_date = date '{period}' and allocation_kind = 'true_up'"
        )
    if lines:
        _print_true_ups(lines, console)
    else:
        console.print(f"closed months are as they were charged: no true-up in {named(period)}")


def _print_checks(checks: Sequence[Check], remarks: Sequence[str], console: Console) -> None:
    for check in checks:
        console.print(f"[green]✓[/] {check.name}" if check.passed else f"[bold red]✗[/] {check.name}")
        if not check.passed:
            console.print(f"    {escape(check.problem)}\n    [bold]→[/] {escape(check.remedy)}", soft_wrap=True)
    for remark in remarks:
        console.print(f"[yellow]![/] {escape(remark)}", soft_wrap=True)


def _print_invoices(lines: Iterable[dict], console: Console) -> None:
    """A line per invoice; sums of what the models have cut into cents."""
    sums: dict[tuple[str, str], list[Decimal]] = {}
    for line in lines:
        parts = sums.setdefault((line["currency"], line["invoice_id"]), [Decimal(0), Decimal(0)])
        parts[line["allocation_kind"] == "true_up"] += line["invoiced_amount"]
    for currency in sorted({currency for currency, _ in sums}, reverse=True):
        table = Table(title=f"Invoices and statements, {currency}", title_justify="left", box=SIMPLE_HEAD)
        table.add_column("", no_wrap=True)
        for column in ("month", "true-ups", "total"):
            table.add_column(column, justify="right", no_wrap=True)
        own_total, corrected_total = Decimal(0), Decimal(0)
        for (of, invoice), (own, corrected) in sorted(sums.items()):
            if of == currency:
                table.add_row(invoice, *(f"{amount:,.2f}" for amount in (own, corrected, own + corrected)))
                own_total, corrected_total = own_total + own, corrected_total + corrected
        table.add_section()
        totals = (own_total, corrected_total, own_total + corrected_total)
        table.add_row("all", *(f"{amount:,.2f}" for amount in totals))
        console.print(table)


def _print_true_ups(lines: Iterable[dict], console: Console) -> None:
    found: dict[tuple[str, str, str, str], Decimal] = {}
    for line in lines:
        if line["allocation_kind"] == "true_up":
            key = line["currency"], str(line["corrected_period_date"])[:7], line["team_name"], line["cause"]
            found[key] = found.get(key, Decimal(0)) + Decimal(line["amount"])
    if not found:
        return
    table = Table(
        title="True-ups: what closed months cost beyond what they were charged", title_justify="left", box=SIMPLE_HEAD
    )
    for column in ("corrects", "team", "", "cause"):
        table.add_column(column, no_wrap=column != "cause")
    table.add_column("amount", justify="right", no_wrap=True)
    for (currency, month, team, cause), amount in sorted(found.items()):
        table.add_row(month, team, currency, cause, f"{amount:+,.9f}")
    console.print(table)
