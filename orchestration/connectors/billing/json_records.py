"""JSON objects out of a text that holds many of them: one a line, one after the other, or in an array.

Only where an object begins and ends is found here, with the line on which it begins; what is in it is for SQL. A broken
object must not swallow those after it: in JSON, `{` follows `:`, `,` or `[`, or begins a new record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestration.connectors.text import blocks

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|["{}\n]')
LONGEST_STRING = 1 << 20
"""Signs after which a string that is still open counts as broken, also where no line ends."""
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class Record:
    line: int
    """Where it begins; records that begin on one line count on from there, so that each has its own number."""
    text: str
    complete: bool


def records(path: Path) -> Iterator[Record]:
    """The records of a file, in memory that does not grow with it, whether it has lines or not."""
    last = 0
    for found in _cut(path):
        last = max(last + 1, found.line)
        yield Record(last, found.text, found.complete)


def _cut(path: Path) -> Iterator[Record]:
    cutter = _Cutter()
    for block in blocks(path, end=b"}"):
        yield from cutter.feed(block.decode(), more=True)
    yield from cutter.feed("", more=False)


class _Cutter:
    """Takes text piece by piece and gives out the records that have ended."""

    def __init__(self) -> None:
        self._text, self._place, self._line = "", 0, 1  # not given out yet, how far looked through, the line there
        self._begin, self._begin_line, self._depth = -1, 0, 0  # the record that is open
        self._loose = 0  # where the text outside of records begins

    def feed(self, text: str, *, more: bool) -> Iterator[Record]:
        self._text += text
        while token := _TOKEN.search(self._text, self._place):
            what = token[0]
            if what == '"' and more and self._may_go_on(token.start()):
                self._forget()
                return
            self._place = token.end()
            if what == "\n":
                self._line += 1
            elif what == "{":
                yield from self._open(token.start())
            elif what == "}" and self._depth:
                self._depth -= 1
                if not self._depth:
                    yield Record(self._begin_line, self._text[self._begin : self._place], True)
                    self._begin, self._loose = -1, self._place
        self._place = len(self._text)
        self._forget()
        if not more:
            yield from self._end()

    def _may_go_on(self, quote: int) -> bool:
        """Whether a string without an end may have it in the next piece: no string spans lines."""
        return self._text.find("\n", quote) < 0 and len(self._text) - quote < LONGEST_STRING

    def _open(self, at: int) -> Iterator[Record]:
        if self._depth and not _is_inside(self._text, at):
            yield Record(self._begin_line, self._text[self._begin : at].rstrip(), False)
            self._depth = 0
        if not self._depth:
            if self._begin < 0 and (stray := _stray(self._text[self._loose : at], self._line)):
                yield stray
            self._begin, self._begin_line = at, self._line
            if end := _end_of_whole(self._text, at):
                yield Record(self._line, self._text[at:end], True)
                self._line += self._text.count("\n", at, end)
                self._begin, self._loose, self._place = -1, end, end
                return
        self._depth += 1

    def _forget(self) -> None:
        """Lets go of what has been given out."""
        keep = self._begin if self._depth else self._loose
        self._text, self._place = self._text[keep:], self._place - keep
        self._begin, self._loose = (0, 0) if self._depth else (-1, 0)

    def _end(self) -> Iterator[Record]:
        if self._depth:
            yield Record(self._begin_line, self._text[self._begin :].rstrip(), False)
        elif stray := _stray(self._text[self._loose :], self._line):
            yield stray


def _end_of_whole(text: str, at: int) -> int | None:
    """Where the object ends, by a decoder in C; none for one that is broken or goes on in the next block."""
    try:
        return _decode(text, at)[1]
    except (ValueError, RecursionError):
        return None


def _is_inside(text: str, at: int) -> bool:
    """Whether a brace may stand here in an object that is not closed yet."""
    while at > 0 and text[at - 1] in " \t\n\r":
        at -= 1
    return at > 0 and text[at - 1] in ":,["


def _stray(text: str, last_line: int) -> Record | None:
    """What stands between records, up to `last_line`, and is more than the punctuation of an array."""
    text = text.lstrip(" \t\n\r[],")
    stray = text.rstrip(" \t\n\r[],")
    return Record(last_line - text.count("\n"), stray, False) if stray else None
