"""Policy that reaches into a closed month: only with a reason, which the true-up then shows.

A restated bill or a corrected record is news from outside, and its difference simply becomes a true-up. A mapping or a
policy is our own decision, and a decision about a month that somebody has signed deserves a second thought.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from orchestration.dbt import Window
from orchestration.errors import ApportionError
from orchestration.ledger.book import closes, let_in, retroactive_days
from orchestration.ledger.landed import land_ledger
from orchestration.ledger.months import closed_days, named, somebody
from orchestration.partitions import windows_of
from orchestration.staleness import current_hashes
from orchestration.workspace import Workspace

RUN_TAG = "apportion/retroactive"
"""Of a Dagster run: the reason for letting changed policy into closed months."""


def require_reason(workspace: Workspace, window: Window, reason: str | None) -> None:
    """Refuses to build closed days whose policy has changed, or records the reason. The caller holds the lock."""
    made = closes(workspace.data)
    days = closed_days(made) & set(window)
    if not days:
        return
    known = _known_policies(workspace)
    current = current_hashes(workspace, days)
    changed = {day: current[day][0] for day in sorted(days) if known[day] and current[day][0] not in known[day]}
    if not changed:
        return
    months = sorted({named(day) for day in changed})
    if not reason or not reason.strip():
        spans = ", ".join(
            str(span.start) if span.days == 1 else f"{span.start} up to {span.end}" for span in windows_of(changed)
        )
        raise ApportionError(
            f"the policy of {len(changed)} days of closed months ({', '.join(months)}) has changed: {spans}."
            " Nothing was built",
            'let the rows begin after the closed month, or run with --retroactive "why": the difference becomes'
            " true-ups of the open month",
        )
    now = datetime.now(UTC)
    let_in(
        workspace.data,
        [
            {
                "usage_date": day,
                "policy_hash": policy_hash,
                "after_close_number": made[-1].number,
                "recorded_at": now,
                "recorded_by": somebody(),
                "reason": reason.strip(),
            }
            for day, policy_hash in changed.items()
        ],
    )
    land_ledger(workspace.data)


def _known_policies(workspace: Workspace) -> dict[date, set[str]]:
    """With which policies each closed day may be built: that of its newest close, and what was let in since.

    A day that was not built when its month was closed has none.
    """
    made = closes(workspace.data)
    known: dict[date, set[str]] = {}
    for close in made:
        for row in close.days:
            known[date.fromisoformat(row["usage_date"])] = {row["policy_hash"]} - {""}
    newest: dict[date, str] = {}
    for row in retroactive_days(workspace.data):
        if int(row["after_close_number"]) == made[-1].number:
            newest[date.fromisoformat(row["usage_date"])] = row["policy_hash"]
    for day, policy_hash in newest.items():
        known[day].add(policy_hash)
    return known
