"""The one partition of everything: the UTC day."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import date, timedelta

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from orchestration.dbt import Window

FIRST_DAY = os.environ.get("APPORTION_FIRST_DAY", "2025-01-01")
"""Days before this one cannot be requested. Early enough for most; history costs nothing until it is loaded."""

daily = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, timezone="UTC")


def range_tags(window: Window) -> dict[str, str]:
    """The tags that make a run cover a range of days. Dagster's end is inclusive, ours never is."""
    return {
        ASSET_PARTITION_RANGE_START_TAG: window.start.isoformat(),
        ASSET_PARTITION_RANGE_END_TAG: (window.end - timedelta(days=1)).isoformat(),
    }


def window_of(run_tags: Mapping[str, str]) -> Window | None:
    """The days that a run was asked for; None for a run of assets without partitions."""
    first = run_tags.get(ASSET_PARTITION_RANGE_START_TAG) or run_tags.get(PARTITION_NAME_TAG)
    last = run_tags.get(ASSET_PARTITION_RANGE_END_TAG) or first
    if first is None or last is None:
        return None
    return Window(date.fromisoformat(first), date.fromisoformat(last) + timedelta(days=1))


def windows_of(days: Iterable[date]) -> list[Window]:
    """Scattered days as the fewest windows that hold exactly them."""
    windows: list[Window] = []
    for day in sorted(set(days)):
        following = day + timedelta(days=1)
        if windows and windows[-1].end == day:
            windows[-1] = Window(windows[-1].start, following)
        else:
            windows.append(Window(day, following))
    return windows
