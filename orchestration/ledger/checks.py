"""What must hold before a month is closed. Each check says what it found and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from orchestration.dbt import check_seeds
from orchestration.errors import ApportionError
from orchestration.ledger.book import closes
from orchestration.ledger.months import closed_days, days_of, named, next_month
from orchestration.partitions import windows_of
from orchestration.staleness import stale_days
from orchestration.warehouse.target import Query
from orchestration.workspace import Workspace

SHOWN = 5
"""Offenders that a check names; the rest are counted."""


@dataclass(frozen=True)
class Check:
    name: str
    problem: str = ""
    """What was found; empty if the check passes."""
    remedy: str = ""

    @property
    def passed(self) -> bool:
        return not self.problem


def check_month(workspace: Workspace, ask: Query, period: date) -> list[Check]:
    stored = {
        day: (policy, inputs)
        for day, policy, inputs in ask("select usage_date, policy_hash, input_hash from core.fct_days")
    }
    month, earlier = set(days_of(period)), closed_days(closes(workspace.data))
    concerned = {day: hashes for day, hashes in stored.items() if day in month | earlier}
    return [
        _built("every day of the month is built", month - stored.keys()),
        _built("every day of the closed months is built", _days_in_the_ledger(workspace) - stored.keys()),
        _current(workspace, concerned),
        *_books(ask, period),
        _accounts(ask, period),
        *_shares(ask, period),
        _policy(workspace),
    ]


def notes(ask: Query, period: date) -> list[str]:
    """What finance may want to know, though it keeps nobody from closing."""
    open_invoices = ask(
        "select provider, invoice_id, currency from reporting.rpt_reconciliation"
        f" where billing_period_date = date '{period}' and cost_status <> 'final' order by 1, 2, 3"
    )
    return [
        f"{provider} {invoice} ({currency}) is provisional: what its final delivery changes becomes a true-up"
        for provider, invoice, currency in open_invoices
    ]


def _days_in_the_ledger(workspace: Workspace) -> set[date]:
    """The days that closes were worked out from: without them nobody can say what has changed since."""
    return {
        date.fromisoformat(row["usage_date"])
        for close in closes(workspace.data)
        for row in close.days
        if row["policy_hash"]
    }


def _built(name: str, missing: set[date]) -> Check:
    if not missing:
        return Check(name)
    first = windows_of(missing)[0]
    return Check(
        name, f"{len(missing)} days are not: {_spans(missing)}", f"apportion run --from {first.start} --to {first.end}"
    )


def _current(workspace: Workspace, stored: dict[date, tuple[str, str]]) -> Check:
    name = "no day has changed since it was built"
    stale = stale_days(workspace, stored) if stored else []
    if not stale:
        return Check(name)
    first = windows_of(stale)[0]
    return Check(
        name,
        f"inputs or policy of {len(stale)} days have: {_spans(stale)}",
        f"apportion run --from {first.start} --to {first.end}",
    )


def _books(ask: Query, period: date) -> Iterator[Check]:
    of_month = f"where usage_date >= date '{period}' and usage_date < date '{next_month(period)}'"
    gaps = ask(
        f"""
        select usage_date, pool_id, component, currency, sum(amount) as gap
        from (
            select usage_date, pool_id, component, currency, amount from core.fct_cost_allocations {of_month}
            union all
            select usage_date, pool_id, component, currency, - allocatable_cost from core.fct_billed_costs {of_month}
        ) as sides
        group by usage_date, pool_id, component, currency
        having sum(amount) <> 0
        order by 1, 2, 3, 4
        """
    )
    yield _listed(
        "allocations equal allocatable cost",
        [f"{day} {pool} {component}: {gap:f} {currency}" for day, pool, component, currency, gap in gaps],
        "run these days again; if it stays, it is a defect",
    )
    invoices = ask(
        f"""
        select provider, invoice_id, currency, invoice_total, billed_difference + restated_cost, invoice_difference
        from reporting.rpt_reconciliation where billing_period_date = date '{period}' order by 1, 2, 3
        """
    )
    loose = [
        f"{provider} {invoice}: {total:f} {currency} on the invoice, the books are off by {(books or invoice_gap):f}"
        for provider, invoice, currency, total, books, invoice_gap in invoices
        if books or invoice_gap
    ]
    if not invoices:
        loose = [f"there is no bill for {named(period)}"]
    yield _listed(
        "the books tie to the providers' invoices",
        loose,
        "run all days that the bill covers; if the invoice on paper is another one, correct seeds/policy/"
        "invoice_totals.csv or ask the provider for the delivery that matches it",
    )


def _accounts(ask: Query, period: date) -> Check:
    rows = ask(
        f"""
        select distinct
            team_id, component, cost_centre is null, expense_account is null, reporting_rate is null, currency
        from reporting.rpt_open_invoice_lines
        where period_date = date '{period}' and billing_mode = 'chargeback'
            and (cost_centre is null or expense_account is null or reporting_rate is null)
        order by 1, 2
        """
    )
    words = ("no cost centre", "no account", "no exchange rate")
    return _listed(
        "every charge can be posted",
        [
            f"{team} {component} {currency}: "
            + ", ".join(word for word, lacks in zip(words, absent, strict=True) if lacks)
            for team, component, *absent, currency in rows
        ],
        "complete seeds/policy/teams.csv, journal_accounts.csv or seeds/reference/currencies.csv",
    )


def _shares(ask: Query, period: date) -> Iterator[Check]:
    limits = limits_on(ask, period)
    of_month = f"where usage_date >= date '{period}' and usage_date < date '{next_month(period)}'"
    if "unattributed_share" in limits:
        rows = ask(
            "select currency, sum(case when team_id = 'unattributed' then amount else 0 end), sum(amount)"
            f" from core.fct_cost_allocations {of_month} group by currency order by currency"
        )
        yield _share("the unattributed share is under its limit", rows, limits["unattributed_share"], "payer_rules.csv")
    if "quarantined_share" in limits:
        rows = ask(
            "select 'records', sum(quarantined_rows), sum(landed_rows) + sum(quarantined_rows)"
            f" from core.fct_days {of_month}"
        )
        yield _share("the quarantined share is under its limit", rows, limits["quarantined_share"], "")


def _share(name: str, rows: Sequence[tuple], limit: Decimal, seed: str) -> Check:
    over = [
        f"{part / whole:.2%} of {what}, allowed {limit:.2%}"
        for what, part, whole in rows
        if part and whole and abs(part) > limit * abs(whole)
    ]
    remedy = f"map what has no owner in seeds/policy/{seed}" if seed else "look at quarantine/ in the data folder"
    return _listed(name, over, remedy)


def limits_on(ask: Query, period: date) -> dict[str, Decimal]:
    """The limits that are valid on the month's last day."""
    last = next_month(period) - timedelta(days=1)
    return dict(
        ask(
            "select limit_name, max_share from core.dim_closing_limits"
            f" where valid_from <= date '{last}' and valid_to > date '{last}'"
        )
    )


def _policy(workspace: Workspace) -> Check:
    try:
        check_seeds(workspace)
    except ApportionError as error:
        return Check("the policy is valid", error.message, error.remedy or "")
    return Check("the policy is valid")


def _listed(name: str, found: Sequence[str], remedy: str) -> Check:
    if not found:
        return Check(name)
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return Check(name, "; ".join(found[:SHOWN]) + more, remedy)


def _spans(days: Sequence[date] | set[date]) -> str:
    spans = windows_of(days)
    shown = [str(span.start) if span.days == 1 else f"{span.start} up to {span.end}" for span in spans[:SHOWN]]
    return ", ".join(shown) + (" …" if len(spans) > SHOWN else "")
