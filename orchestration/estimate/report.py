"""The estimate as people and programs read it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from orchestration.dbt import Window
from orchestration.errors import ApportionError
from orchestration.estimate.billing import MIB, PRICE_PER_TIB, Bill, Estimate, estimated
from orchestration.estimate.queries import plan
from orchestration.estimate.sizes import AVERAGED_OVER, measured
from orchestration.workspace import Workspace

NAMED = 6
"""How many tables or days a note names."""
ALL_DAYS = "checks of all days"
"""Invoices and dimensions are checked over the whole history after each run: this part grows with it."""
_SMALLEST = Decimal("0.000001")
"""One query's minimum is 0.00006 USD: prices are told to the millionth."""


def estimate(workspace: Workspace, window: Window, price_per_tib: Decimal = PRICE_PER_TIB) -> Estimate:
    """What BigQuery would bill for a run of these days. Asks nothing of BigQuery."""
    if price_per_tib < 0:
        raise ApportionError(f"a price of {price_per_tib} per TiB makes no sense", "give what your contract says")
    queries = plan(workspace, window)
    return estimated(queries, measured(workspace, window, queries), window, price_per_tib)


def show_estimate(
    workspace: Workspace,
    window: Window,
    price_per_tib: Decimal = PRICE_PER_TIB,
    console: Console | None = None,
    as_json: bool = False,
) -> None:
    console = console or Console(highlight=False)
    found = estimate(workspace, window, price_per_tib)
    if as_json:
        # Not through the console, which would fold long lines.
        console.file.write(json.dumps(as_data(found), indent=2) + "\n")
        return
    console.print(as_table(found))
    for note in notes(found):
        console.print(f"  {note}", soft_wrap=True, markup=False)


def as_data(found: Estimate) -> dict[str, Any]:
    return {
        "window_start": found.window.start.isoformat(),
        "window_end": found.window.end.isoformat(),
        "price_per_tib": str(found.price_per_tib),
        "models": [_data(found, bill) for bill in found.of("model")],
        "tests": [_data(found, bill) for bill in found.of("test")],
        "total": _data(found, total(found.of_the_days())),
        "all_days": _data(found, total(found.of_all_days(), ALL_DAYS)),
        "averaged_days": {what: [str(day) for day in days] for what, days in found.sizes.averaged.items()},
        "unknown_tables": list(found.sizes.unknown),
        "empty_tables": list(found.sizes.empty),
    }


def _data(found: Estimate, bill: Bill) -> dict[str, Any]:
    return {
        "name": bill.name,
        "layer": bill.layer,
        "tables": bill.tables,
        "scanned_bytes": bill.scanned,
        "billed_bytes": bill.billed,
        "minimum_bytes": bill.padding,
        "price": str(_rounded(found.price(bill.billed))),
        "reads_all_days": bill.reads_all_days,
    }


def as_table(found: Estimate) -> Table:
    """Dearest first. Views are left out, because making them costs nothing; tests are one line."""
    days = f"{found.window.start} up to {found.window.end}"
    table = Table(
        title=f"What BigQuery would bill for {days}: MiB, and USD at {found.price_per_tib} per TiB",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("model", no_wrap=True)
    for heading in ("tables", "scanned", "billed", "minimum", "USD"):
        table.add_column(heading, justify="right", no_wrap=True)
    models = [bill for bill in found.of("model") if bill.tables and not bill.reads_all_days]
    for bill in sorted(models, key=lambda bill: (-bill.billed, -bill.scanned, bill.name)):
        table.add_row(*_cells(found, bill))
    table.add_section()
    tests = [bill for bill in found.of("test") if not bill.reads_all_days]
    table.add_row(*_cells(found, total(tests, f"{len(tests)} tests")))
    table.add_section()
    table.add_row(*_cells(found, total(found.of_the_days())), style="bold")
    table.add_section()
    table.add_row(*_cells(found, total(found.of_all_days(), ALL_DAYS)))
    return table


def _cells(found: Estimate, bill: Bill) -> list[str]:
    sizes = (bill.scanned, bill.billed, bill.padding)
    price = _rounded(found.price(bill.billed))
    return [bill.name, str(bill.tables), *(f"{size / MIB:,.1f}" for size in sizes), f"{price:f}"]


def notes(found: Estimate) -> list[str]:
    """What the numbers do not tell: what was not there to be measured."""
    sizes, lines = found.sizes, []
    for what, days in sizes.averaged.items():
        lines.append(f"not {what} yet: {_listed(days)}; the mean of the newest {AVERAGED_OVER} {what} days stands in")
    if sizes.unknown:
        lines.append(
            f"never built here, so that only the minimum is counted for them: {_listed(sizes.unknown)};"
            " run a day on DuckDB to measure them"
        )
    if sizes.empty:
        lines.append(f"without a row on the days that are read: {_listed(sizes.empty)}")
    return lines


def _listed(names: Collection[object]) -> str:
    """The first few: a program finds all of them in the JSON."""
    shown = [str(name) for name in list(names)[:NAMED]]
    return ", ".join(shown) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")


def total(bills: Iterable[Bill], name: str = "total") -> Bill:
    bills = list(bills)
    sums = {part: sum(getattr(bill, part) for bill in bills) for part in ("tables", "scanned", "billed")}
    return Bill(name, "total", "", **sums)


def _rounded(price: Decimal) -> Decimal:
    return price.quantize(_SMALLEST)
