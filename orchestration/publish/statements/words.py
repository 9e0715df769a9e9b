"""How a statement says things. Numbers come from SQL; here they only get their commas."""

from __future__ import annotations

import shlex
from datetime import date
from decimal import Decimal

MINUS = "−"
"""The typographic one: a hyphen is easily overlooked in front of a number."""

KINDS = {
    "direct": ("Used", "what was held and used, by its driver"),
    "idle": ("Idle", "capacity that nobody used, by the rule of its cause"),
    "shared": ("Shared", "overhead such as support and operations"),
    "burst": ("Burst", "use above entitlement, and what lenders get for it"),
    "outcome_credit": ("Credits for lost work", "work that was lost through no fault of the user"),
    "adjustment": ("Adjustments", "agreed changes, each with a reason and a funder"),
    "unattributed": ("Claimed by no rule", "what no rule gives to a payer"),
    "true_up": ("True-ups", "corrections of months that were closed before"),
}
CAUSES = {
    "unscheduled": ("Unscheduled", "nobody had it"),
    "reserved": ("Reserved", "held free by a reservation"),
    "down": ("Down", "drained or failed"),
    "stranded": ("Stranded", "free GPUs without free cores or memory beside them"),
}
MODES = {"chargeback": "Chargeback", "showback": "Showback"}
UNITS = {"gpu": "GPU-hour", "cpu": "core-hour", "memory": "GiB-hour", "energy": "kWh"}


def cents(amount: Decimal | float | None) -> str:
    return _signed(amount, 2, plus=False)


def change(amount: Decimal | float | None) -> str:
    return _signed(amount, 2, plus=True)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{_signed(value, 1, plus=False)} %"


def change_percent(value: float | None) -> str:
    return "" if value is None else f"{_signed(value, 1, plus=True)} %"


def rate(value: Decimal | float | None, component: str = "gpu") -> str:
    """The prices of a core-hour and a GiB-hour are far below a cent."""
    return "–" if value is None else f"{value:,.{6 if component in ('cpu', 'memory') else 4}f}"


def hours(value: Decimal | float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def month(day: date | None) -> str:
    return "" if day is None else f"{day:%B %Y}"


def days(first: date | None, last: date | None) -> str:
    if first is None or last is None:
        return ""
    return f"{first.day} {first:%b}" if first == last else f"{first.day} {first:%b} – {last.day} {last:%b}"


def explain_team(team_id: str, period: str, pool: str | None = None) -> str:
    return shlex.join(["apportion", "explain", "team", team_id, "--month", period, *(["--pool", pool] if pool else [])])


def explain_job(job_key: str) -> str:
    return shlex.join(["apportion", "explain", "job", job_key])


def _signed(amount: Decimal | float | None, places: int, plus: bool) -> str:
    if amount is None:
        return "–"
    rounded = round(amount, places)
    sign = MINUS if rounded < 0 else "+" if plus and rounded > 0 else ""
    return f"{sign}{abs(rounded):,.{places}f}"
