"""Times of the demo world: whole seconds since the epoch, in UTC, and the spellings that the files use."""

from __future__ import annotations

import zlib
from datetime import UTC, date, datetime
from functools import cache

import numpy as np

MINUTE, HOUR, DAY = 60, 3_600, 86_400
FIRST_DAY = date(2026, 1, 1)
"""The first day that the inbox describes."""
PERIOD_START = int(datetime.combine(FIRST_DAY, datetime.min.time(), UTC).timestamp())
MAX_DAYS = 35
"""The fleet's history (drained rack, moved nodes, restated week) is written for these days."""
WARM_UP = 3 * DAY
"""Scheduling starts this long before the period, so that it opens with jobs already running."""
DUMP_DELAY = 15 * MINUTE
"""A daily dump is taken this long after its UTC day has ended."""


def at(text: str) -> int:
    """Seconds since the epoch of a UTC time such as `2026-01-05` or `2026-01-05T03:00`."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def _utc(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@cache
def iso(second: int) -> str:
    """`2026-01-05T03:00:00Z`."""
    return _utc(second).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def plain(second: int) -> str:
    """`2026-01-05T03:00:00`, as Slurm prints times: without a zone."""
    return _utc(second).strftime("%Y-%m-%dT%H:%M:%S")


@cache
def day_name(second: int) -> str:
    """`2026-01-05`."""
    return _utc(second).strftime("%Y-%m-%d")


def stamp(second: int) -> str:
    """`20260106T001500Z`, the delivery stamp in a file name."""
    return _utc(second).strftime("%Y%m%dT%H%M%SZ")


@cache
def month_bounds(second: int) -> tuple[int, int]:
    """First second of the month, and of the next one."""
    moment = _utc(second)
    start = datetime(moment.year, moment.month, 1, tzinfo=UTC)
    following = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=UTC)
    return int(start.timestamp()), int(following.timestamp())


def dice(seed: int, *names: str | int) -> np.random.Generator:
    """An own stream of random numbers per subject, so that a change in one part of the world moves no other.

    Names are hashed with crc32 because Python's `hash` of a string differs from process to process.
    """
    return np.random.default_rng([seed, *(n if isinstance(n, int) else zlib.crc32(n.encode()) for n in names)])
