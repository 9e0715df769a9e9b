"""Samples written as Prometheus and its tools write them, independently of how they are read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float
    ms: int
    """When it was taken, in milliseconds since 1970."""


def sample(name: str, ms: int, value: float, **labels: str) -> Sample:
    return Sample(name, tuple(labels.items()), value, ms)


def number(value: float) -> str:
    """As Go prints it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return f"{value:.0f}" if value == int(value) and abs(value) < 2**53 else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _inside(labels: Sequence[tuple[str, str]], between: str = ",") -> str:
    return between.join(f'{key}="{_escaped(value)}"' for key, value in labels)


def text(samples: Sequence[Sample]) -> str:
    """A scrape whose samples carry milliseconds."""
    lines, seen = [], set()
    for s in samples:
        if s.name not in seen:
            lines += [f"# HELP {s.name} some {{help}} text", f"# TYPE {s.name} gauge"]
            seen.add(s.name)
        braces = f"{{{_inside(s.labels)}}}" if s.labels else ""
        lines.append(f"{s.name}{braces} {number(s.value)} {s.ms}")
    return "\n".join(lines) + "\n"


def loose_text(samples: Sequence[Sample]) -> str:
    """The same with all the blanks that the format allows."""
    lines = ["", "# a comment"]
    for s in samples:
        braces = f" {{ {_inside(s.labels, ' , ')}, }} " if s.labels else "\t"
        lines += [f"{s.name}{braces}\t{number(s.value)}\t  {s.ms}  ", ""]
    return "\r\n".join(lines)


def untimed_text(samples: Sequence[Sample]) -> str:
    """What `curl :9400/metrics` prints: samples of one instant that do not say which."""
    assert len({s.ms for s in samples}) <= 1
    return "".join(f"{s.name}{{{_inside(s.labels)}}} {number(s.value)}\n" for s in samples)


def open_metrics(samples: Sequence[Sample]) -> str:
    lines = []
    for place, s in enumerate(samples):
        exemplar = ' # {trace_id="a}b # {"} 0.5 1767578400.1' if place % 3 == 0 else ""
        lines.append(f"{s.name}{{{_inside(s.labels)}}} {number(s.value)} {s.ms / 1000:.3f}{exemplar}")
    return "\n".join(["# TYPE x counter", "# UNIT x seconds", *lines, "# EOF", ""])


def dump(samples: Sequence[Sample]) -> str:
    """`promtool tsdb dump`: labels as Go quotes text."""
    unprintable = {"\t": "\\t", "\a": "\\a", "\x01": "\\x01", "\u200b": "\\u200b"}
    lines = []
    for s in samples:
        labels = _inside((("__name__", s.name), *s.labels), ", ")
        quoted = "".join(unprintable.get(letter, letter) for letter in labels)
        lines.append(f"{{{quoted}}} {number(s.value)} {s.ms}\n")
    return "".join(lines)


def quoted_names(samples: Sequence[Sample]) -> str:
    """As Prometheus 3 writes names with letters that older versions did not allow."""
    lines = []
    for s in samples:
        labels = f", {_inside(s.labels)}" if s.labels else ""
        lines.append(f'{{"{s.name}"{labels}}} {number(s.value)} {s.ms}\n')
    return "".join(lines)


def _by_series(samples: Sequence[Sample]) -> dict[tuple, list[Sample]]:
    found: dict[tuple, list[Sample]] = {}
    for s in samples:
        found.setdefault((s.name, s.labels), []).append(s)
    return found


def _metric(series: tuple) -> dict[str, str]:
    return {"__name__": series[0], **dict(series[1])}


def query_range(samples: Sequence[Sample], indent: int | None = None) -> str:
    """One document, as `curl …/api/v1/query_range` leaves it; by default on a single line."""
    result = [
        {"metric": _metric(series), "values": [[s.ms / 1000, number(s.value)] for s in taken]}
        for series, taken in _by_series(samples).items()
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}, indent=indent)


def pretty_range(samples: Sequence[Sample]) -> str:
    return query_range(samples, indent=2)


def queries(samples: Sequence[Sample]) -> str:
    """A document of `/api/v1/query` for each instant, one after another."""
    documents = []
    for ms in sorted({s.ms for s in samples}):
        result = [
            {"metric": _metric((s.name, s.labels)), "value": [s.ms / 1000, number(s.value)]}
            for s in samples
            if s.ms == ms
        ]
        documents.append(json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}))
    return "\n".join(documents)


def victoria_export(samples: Sequence[Sample]) -> str:
    """A series a line, values and times apart; what is not a number is null."""
    return "\n".join(
        json.dumps(
            {
                "metric": _metric(series),
                "values": [None if s.value != s.value else s.value for s in taken],
                "timestamps": [s.ms for s in taken],
            }
        )
        for series, taken in _by_series(samples).items()
    )


Writer = Callable[[Sequence[Sample]], str]
DIALECTS: dict[str, Writer] = {
    writer.__name__: writer
    for writer in (
        text,
        loose_text,
        open_metrics,
        dump,
        quoted_names,
        query_range,
        pretty_range,
        queries,
        victoria_export,
    )
}


def any_dialect(rng: random.Random) -> Writer:
    return DIALECTS[rng.choice(sorted(DIALECTS))]
