"""The name and the labels of a series, in the notations of scrapes, of promtool and of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:.]*"
_HEAD = re.compile(rf"({NAME})?\s*(?:\{{(.*)\}})?\s*", re.DOTALL)
_LABEL = re.compile(
    r'\s*("(?:[^"\\]|\\.)*"|[a-zA-Z_][a-zA-Z0-9_.]*)\s*(?:=\s*"((?:[^"\\]|\\.)*)")?\s*(?:,|$)', re.DOTALL
)
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", '"': '"', "\\": "\\"}
_ESCAPED_IN_DUMPS = {**_ESCAPED, "a": "\a", "b": "\b", "f": "\f", "r": "\r", "t": "\t", "v": "\v"}


def parse_head(head: str, metrics: Mapping[str, str]) -> tuple[str, list[tuple[str, str]]]:
    """The caller's name of a metric, and its labels, of `name{a="b"}`, `{__name__="name",a="b"}` or a JSON object."""
    labels = _parse_json(head) or _parse_labels(head)
    name = labels.pop("__name__")
    if name not in metrics:  # another label's name or value looked like it
        raise ValueError("the name of the series is not clear")
    return metrics[name], list(labels.items())


def _parse_labels(head: str) -> dict[str, str]:
    found = _HEAD.fullmatch(head)
    if not found:
        raise ValueError("name and labels cannot be told apart")
    labels = {"__name__": found[1]} if found[1] else {}
    text, place = (found[2] or "").strip(), 0
    unescape = _unescape_dump if text.startswith("__name__=") else _unescape
    while place < len(text):
        label = _LABEL.match(text, place)
        if not label or label.end() == place:
            raise ValueError(f"label that cannot be read: {text[place : place + 40]}")
        name, value, place = label[1].strip('"'), label[2], label.end()
        if value is None:  # a quoted name of the metric inside of the braces
            name, value = "__name__", name
        if name in labels:
            raise ValueError(f"label is there twice: {name}")
        labels[name] = unescape(value) if "\\" in value else value
    if not labels.get("__name__"):
        raise ValueError("the series has no name")
    return labels


def _unescape(text: str) -> str:
    """The format knows three escapes; any other backslash is just one."""
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1][0], "\\" + found[1][0]) + found[1][1:], text)


def _unescape_dump(text: str) -> str:
    """promtool prints labels as Go quotes text: all that is not printable is escaped."""

    def letter(found: re.Match[str]) -> str:
        if len(found[1]) > 1:
            code = int(found[1][1:], 16)
            return chr(code) if code < 0x80 or found[1][0] != "x" else "\ufffd"
        return _ESCAPED_IN_DUMPS.get(found[1], found[0])

    return _ESCAPE.sub(letter, text)


def _parse_json(head: str) -> dict[str, str] | None:
    """Labels that were written as JSON; None for another notation."""
    if not head.startswith('{"'):
        return None
    try:
        return json.loads(head)
    except ValueError:
        return None
