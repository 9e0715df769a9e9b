"""What is happening right now, for whoever watches: the CLI shows it, Dagster's own log does not need it."""

from __future__ import annotations

from collections.abc import Callable

# Of the process, not of a context: dbt tells what it did from threads of its own, which inherit none.
_listeners: list[Callable[[str], None]] = []


def listen(listener: Callable[[str], None]) -> None:
    _listeners[:] = [listener]


def say(message: str) -> None:
    for listener in _listeners:
        listener(message)
