"""Months, and who does things to them."""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from datetime import date, timedelta

from orchestration.dbt import Window
from orchestration.ledger.book import Close


def month_of(day: date) -> date:
    return day.replace(day=1)


def next_month(period: date) -> date:
    return (period.replace(day=28) + timedelta(days=4)).replace(day=1)


def days_of(period: date) -> Window:
    return Window(period, next_month(period))


def named(period: date) -> str:
    return f"{period:%Y-%m}"


def closed_days(closes: Sequence[Close]) -> set[date]:
    return {day for close in closes for day in days_of(close.period)}


def somebody() -> str:
    """Who is doing this: APPORTION_USER, else the user of the system."""
    return os.environ.get("APPORTION_USER") or getpass.getuser()
