"""The one error that reaches people: what is wrong, and what to do about it."""

from __future__ import annotations


class ApportionError(Exception):
    """A problem that its reader can fix: shown as a message with a remedy, never as a traceback.

    Anything else that is raised is a defect of ours and deserves its traceback.
    """

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.remedy}" if self.remedy else self.message
