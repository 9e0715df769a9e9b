"""What is happening right now, for whoever watches: the CLI shows it, Dagster's own log does not need it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("progress_listener", default=None)


def listen(listener: Callable[[str], None]) -> None:
    _listener.set(listener)


def say(message: str) -> None:
    if (listener := _listener.get()) is not None:
        listener(message)
