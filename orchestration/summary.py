"""What a run prints at its end: who pays, and the two lines that show that nothing was lost."""

from __future__ import annotations

from decimal import Decimal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from orchestration.dbt import Window
from orchestration.warehouse.target import Query, reading
from orchestration.workspace import Workspace


def print_summary(workspace: Workspace, window: Window, console: Console) -> None:
    # With the lock: a reader in another process would make the next run fail, and a run this reader.
    with workspace.writing(), reading(workspace) as ask:
        _print_teams(ask, window, console)
        print_closing_lines(ask, console)


def _print_teams(ask: Query, window: Window, console: Console) -> None:
    rows = ask(
        f"""
        select
            team_name, currency,
            sum(direct_cost), sum(idle_cost), sum(shared_cost) + sum(unattributed_cost),
            sum(burst_cost) + sum(outcome_credit_cost) + sum(adjustment_cost), sum(total_cost),
            sum(busy_gpu_hours) / nullif(sum(sampled_gpu_hours), 0)
        from reporting.rpt_team_costs_daily
        where usage_date >= date '{window.start}' and usage_date < date '{window.end}'
        group by team_name, currency
        order by currency desc, sum(total_cost) desc
        """
    )
    for currency in dict.fromkeys(row[1] for row in rows):
        table = Table(title=f"{window.start} up to {window.end}, {currency}", title_justify="left", box=SIMPLE_HEAD)
        table.add_column("team", no_wrap=True)
        for column in ("direct", "idle", "shared", "transfers", "total", "busy"):
            table.add_column(column, justify="right", no_wrap=True)
        for team, its_currency, *amounts, busy in rows:
            if its_currency == currency:
                table.add_row(team, *(f"{amount:,.0f}" for amount in amounts), "–" if busy is None else f"{busy:.0%}")
        console.print(table)


CLOSING = {
    "allocatable": "any_value(currency_allocatable_cost)",
    "allocated": "any_value(currency_allocated_cost)",
    "gap": "any_value(allocated_difference)",
    "billed": "sum(billed_cost)",
    "ahead": "sum(paid_ahead_cost)",
    "released": "sum(released_cost)",
    "outside": "sum(outside_cost)",
    "restated": "sum(restated_cost)",
    "difference": "sum(billed_difference)",
}


def print_closing_lines(ask: Query, console: Console) -> None:
    """Over all that is built: what was allocatable is allocated, and what was billed is accounted for."""
    rows = ask(
        f"select currency, {', '.join(CLOSING.values())} from reporting.rpt_reconciliation"
        " group by currency order by currency desc"
    )
    for row in rows:
        line = dict(zip(("currency", *CLOSING), row, strict=True))
        money = {name: f"{amount:,.9f}" for name, amount in line.items() if name != "currency"}
        again = f" + on days to be run again {money['restated']}" if line["restated"] else ""
        console.print(
            f"{line['currency']}  allocatable {money['allocatable']}, allocated {money['allocated']},"
            f" difference {_exactly(line['gap'])}",
            soft_wrap=True,
        )
        console.print(
            f"{line['currency']}  billed {money['billed']} = allocatable {money['allocatable']} + paid ahead"
            f" {money['ahead']} − released {money['released']} + outside the loaded days {money['outside']}{again},"
            f" difference {_exactly(line['difference'])}",
            soft_wrap=True,
        )


def _exactly(difference: Decimal) -> str:
    colour = "green" if difference == 0 else "bold red"
    return f"[{colour}]{difference:.9f}[/]"
