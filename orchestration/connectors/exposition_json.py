"""Answers of Prometheus' HTTP API as files: documents of `query` and `query_range`, and one series a line.

One document or several after one another; only where a series begins and ends is found here. VictoriaMetrics' `export`
gives the same series with values and times apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestration.connectors.base import Delivery
from orchestration.connectors.text import blocks
from orchestration.errors import ApportionError

_SERIES = re.compile(r'\{\s*"metric"\s*:')
_FAILED = re.compile(r'"status"\s*:\s*"error"')
_SUCCEEDED = re.compile(r'"status"\s*:\s*"success"')
_ERROR = re.compile(r'"error"\s*:\s*("(?:[^"\\]|\\.)*")')
_PARTIAL = re.compile(r'"isPartial"\s*:\s*true|"warnings"\s*:\s*\[\s*"')
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class JsonSeries:
    line: int
    """Where it begins; series that begin on one line count on from there, so that each has its own number."""
    name: str
    head: str
    """Its labels as JSON."""
    values: list[str]
    stamps: list[float | None]


Broken = tuple[int, str, str]
"""Line, reason and text of a series that cannot be read."""


def json_series(delivery: Delivery, warnings: list[str]) -> Iterator[JsonSeries | Broken]:
    """All series of a file; puts into `warnings` what the server said about its answer."""
    text, line, last = "", 1, 0
    seen = False
    for block in _then_end(delivery):
        is_end = block is None
        text += "" if block is None else block
        place = 0
        while found := _SERIES.search(text, place):
            start = found.start()
            line += _outside(delivery, text[place:start], line, warnings)
            end = _end_of(text, start)
            follower = None if end else _SERIES.search(text, found.end())
            if not end and not follower and not is_end:
                place = start
                break
            stop = end or (follower.start() if follower else len(text))
            last, seen = max(last + 1, line), True
            yield _read(text[start:stop], last) if end else (last, "broken or cut off", text[start:stop].strip())
            line += text.count("\n", start, stop)
            place = stop
        else:
            if is_end:
                seen |= bool(_SUCCEEDED.search(text, place)) or not text[place:].strip()
                _outside(delivery, text[place:], line, warnings)
        text = text[place:]
    if not seen:
        raise ApportionError(
            f"{delivery.path}: JSON without any series", "export the answer of /api/v1/query or /api/v1/query_range"
        )


def _then_end(delivery: Delivery) -> Iterator[str | None]:
    for block in blocks(delivery.path):
        yield block.decode()
    yield None


def _end_of(text: str, start: int) -> int | None:
    try:
        return _decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _outside(delivery: Delivery, text: str, line: int, warnings: list[str]) -> int:
    """Looks at what stands around the series, and counts its lines."""
    if _FAILED.search(text):
        said = _ERROR.search(text)
        why = json.loads(said[1]) if said else "no reason given"
        raise ApportionError(
            f"{delivery.path}, line {line}: Prometheus answered with an error: {why}",
            "repeat the query and deliver again",
        )
    if _PARTIAL.search(text):
        warnings.append("Prometheus warned that its answer may be incomplete")
    return text.count("\n")


def _read(text: str, line: int) -> JsonSeries | Broken:
    try:
        series: dict[str, Any] = json.loads(text)
        metric = {str(key): str(value) for key, value in series["metric"].items()}
        values, stamps = _points(series)
    except (KeyError, TypeError, ValueError, AttributeError):
        return line, "a series without labels, values or times", text[:2000]
    return JsonSeries(line, metric.get("__name__", ""), json.dumps(metric), values, stamps)


def _points(series: dict[str, Any]) -> tuple[list[str], list[float | None]]:
    if "timestamps" in series:
        values, times = series["values"], series["timestamps"]
        if len(values) != len(times):
            raise ValueError
    else:
        pairs = series["values"] if "values" in series else [series["value"]]
        times, values = ([pair[place] for pair in pairs] for place in (0, 1))
    return ["NaN" if value is None else str(value) for value in values], [float(at) for at in times]
