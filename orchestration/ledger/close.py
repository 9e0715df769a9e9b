"""Closing a month: check it, append it to the ledger, show it in the warehouse.

What a close charges is computed by the models (`rpt_open_invoice_lines`); here it is only written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from orchestration import progress
from orchestration.dbt import build_arguments, failure, invoke
from orchestration.errors import ApportionError
from orchestration.ledger.book import LINE_COLUMNS, Close, append, closes, require_intact
from orchestration.ledger.checks import Check, check_month
from orchestration.ledger.landed import land_ledger
from orchestration.ledger.months import days_of, named, next_month, somebody
from orchestration.publish import publish_everything
from orchestration.warehouse.target import Query, reading, receive
from orchestration.workspace import DUCKDB, Workspace

MODELS = "stg_ledger__lines+ stg_ledger__days+ stg_ledger__retroactive_days+"
"""What has to be built for a close to be seen."""

ORDER = (
    *("currency", "team_id", "project_id", "component", "allocation_kind", "corrected_period_date", "billing_mode"),
    "cost_centre",
)
"""In which the models cut cents."""


class ChecksFailed(ApportionError):
    def __init__(self, period: date, checks: Sequence[Check]) -> None:
        failed = [check for check in checks if not check.passed]
        super().__init__(
            f"{named(period)} is not closed: {len(failed)} of {len(checks)} checks fail:\n  "
            + "\n  ".join(f"{check.name}: {check.problem}\n    → {check.remedy}" for check in failed),
            'mend what is named, or close with --override "why"; the reason is stored with the close',
        )
        self.checks = checks


@dataclass(frozen=True)
class Closing:
    """What a close would append, before anybody does it."""

    period: date
    checks: Sequence[Check]
    lines: Sequence[dict]

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if not check.passed]


def prepare_closing(workspace: Workspace, period: date) -> Closing:
    """Looks, and changes nothing. The caller holds the writer's lock."""
    require_intact(workspace.data)
    _require_next(workspace, period)
    land_ledger(workspace.data)
    with reading(workspace) as ask:
        progress.say(f"checking {named(period)}")
        return Closing(period, check_month(workspace, ask, period), _lines(ask, period))


def close_month(workspace: Workspace, period: date, *, override: str | None = None, by: str | None = None) -> Close:
    """Closes a month for good. Raises ChecksFailed where a check fails and no reason is given to go on."""
    with workspace.writing():
        closing = prepare_closing(workspace, period)
        if closing.failed and not (override and override.strip()):
            raise ChecksFailed(period, closing.checks)
        with reading(workspace) as ask:
            progress.say(f"closing {named(period)}")
            close = append(
                workspace.data,
                period,
                _header(ask, closing, override.strip() if closing.failed and override else None, by or somebody()),
                closing.lines,
                _days(workspace, ask, period),
            )
        show(workspace)
        if workspace.target == DUCKDB:
            publish_everything(workspace, progress.say)
    return close


def show(workspace: Workspace) -> None:
    """Brings what the ledger holds into the warehouse. Can be done again at any time."""
    land_ledger(workspace.data)
    receive(workspace, (), progress.say)
    result = invoke(workspace, build_arguments(None, MODELS))
    if not result.success:
        raise failure(workspace, result, list(getattr(result.result, "results", None) or []))


def _require_next(workspace: Workspace, period: date) -> None:
    """Months are closed once, and in order: what changes later goes into the month after the last closed one."""
    made = closes(workspace.data)
    if not made:
        return
    last = made[-1]
    for close in made:
        if close.period == period:
            raise ApportionError(
                f"{named(period)} is closed already: by {close.header['closed_by']} at {close.header['closed_at']}",
                f"what has changed since becomes true-ups of {named(next_month(last.period))}",
            )
    if period != next_month(last.period):
        raise ApportionError(
            f"{named(period)} cannot be closed: the last closed month is {named(last.period)}",
            f"close {named(next_month(last.period))} next",
        )


def _lines(ask: Query, period: date) -> list[dict]:
    nulls_first = ", ".join(f"{name} nulls first" for name in ORDER)
    return ask.named(
        f"select {', '.join(LINE_COLUMNS)} from reporting.rpt_open_invoice_lines"
        f" where period_date = date '{period}' order by {nulls_first}"
    )


def _header(ask: Query, closing: Closing, override: str | None, by: str) -> dict:
    period = closing.period
    month = f"usage_date >= date '{period}' and usage_date < date '{next_month(period)}'"
    policies = ask(f"select usage_date, policy_hash from core.fct_days where {month} order by usage_date")
    deliveries = ask.named(
        f"""
        select distinct source_name, table_name, delivery, content_hash
        from core.raw_deliveries
        where period_start_date < date '{next_month(period)}' and period_end_date > date '{period}' and not is_replaced
        order by source_name, table_name, delivery, content_hash
        """
    )
    bills = sorted({row["content_hash"] for row in deliveries if row["table_name"] == "charges"})
    return {
        "closed_at": datetime.now(UTC).isoformat(timespec="microseconds"),
        "closed_by": by,
        "override_reason": override,
        "failed_checks": {check.name: check.problem for check in closing.failed},
        "policy_version": hashlib.sha256("".join(f"{day} {policy}\n" for day, policy in policies).encode()).hexdigest(),
        "delivery_hashes": ",".join(bills),
        "deliveries": deliveries,
    }


def _days(workspace: Workspace, ask: Query, period: date) -> list[dict]:
    """What each day of the month was built from, and of earlier months what is no longer as the ledger knows it.

    The true-ups of this close make up for those, so later ones have to be explained by what changes from here on.
    """
    known = {row["usage_date"]: row for close in closes(workspace.data) for row in close.days}
    built = {
        row["usage_date"]: row
        for row in ask.named("select usage_date, policy_hash, bill_hash, records_hash from core.fct_days")
    }
    empty = {"policy_hash": "", "bill_hash": "", "records_hash": ""}
    own = [built.get(day, {"usage_date": day, **empty}) for day in days_of(period)]
    changed = [
        row
        for day, row in sorted(built.items())
        if str(day) in known and any(known[str(day)][name] != row[name] for name in empty)
    ]
    return [*changed, *own]
