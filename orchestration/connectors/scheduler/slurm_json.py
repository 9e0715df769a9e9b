"""JSON of Slurm: `sacct --json`, `scontrol --json` and the answers of slurmrestd, as the columns of sacct.

The shapes differ from version to version: a number is a number, or an object that says whether it is set; a state is a
word or a list of words; slurmdbd nests what slurmctld keeps flat. Every record becomes the text that sacct would have
printed, so that one set of rules judges all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestration.connectors.base import Delivery
from orchestration.connectors.text import blocks
from orchestration.errors import ApportionError

_decoder = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\r\n]*")
NOT_SET = {2**32 - 2, 2**32 - 1, 2**64 - 2, 2**64 - 1}
"""What older versions print for a number that is not set or has no limit. None of what is read has 16 bits, whose mark
65534 is as good an id or amount as any."""
_PLAIN = int | float | str
NOTHING_FOUND = 9003
"""The number under which slurmrestd says that a list is empty."""
UNFINISHED = {"CONFIGURING", "PENDING", "RESIZING", "RUNNING", "SIGNALING", "STAGE_OUT", "STOPPED", "SUSPENDED"}

Record = Mapping[str, Any]


Take = Callable[[int, Record], None]
"""Gets each record with the line that it begins on; records on one line count on from there, so that all differ."""


def is_json(delivery: Delivery) -> bool:
    for block in blocks(delivery.path):
        if text := block.lstrip():
            return text.startswith(b"{")
    return False


def read_document(delivery: Delivery, key: str, take: Take) -> str:
    """Hands out the records of a document's list `key`, one at a time; returns which version wrote it."""
    text = b"".join(blocks(delivery.path)).decode()
    try:
        reader = _Reader(text, key, take)
        version = reader.read()
    except (ValueError, RecursionError) as error:
        at = getattr(error, "pos", len(text))
        message = getattr(error, "msg", "nested too deeply")
        raise ApportionError(
            f"{delivery.path}, line {text.count(chr(10), 0, at) + 1}: not readable as JSON: {message}",
            "the file is cut off or damaged: deliver it again",
        ) from error
    except LookupError as error:
        raise ApportionError(
            f"{delivery.path}: JSON without a list {key!r}: {error.args[0]}",
            "deliver what --json prints, or what slurmrestd answers, as it is",
        ) from error
    if not reader.count and (failure := _failure(reader.errors)):
        # Taken at its word, an empty list would erase the days that the file is complete for.
        raise ApportionError(
            f"{delivery.path}: Slurm answered with an error: {failure}", "repeat the query and deliver again"
        )
    return version


class _Reader:
    """Walks through the top level of a document, so that of a long list only one record is in memory as objects."""

    def __init__(self, text: str, key: str, take: Take) -> None:
        self._text, self._key, self._take_record = text, key, take
        self._at = 0
        self.count = 0
        self.errors: Any = None
        """What the document says under this name."""

    def read(self) -> str:
        found, meta = False, None
        for name in self._names():
            if name == self._key and self._next() == "[":
                self._hand_out()
                found = True
            else:
                value = self._value()
                meta = value if name == "meta" else meta
                self.errors = value if name == "errors" else self.errors
        if self._next():
            raise json.JSONDecodeError("more than one document", self._text, self._at)
        if not found:
            raise LookupError(self._text[:80])
        return _written_by(meta)

    def _next(self) -> str:
        self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
        return self._text[self._at : self._at + 1]

    def _take(self, sign: str) -> None:
        if self._next() != sign:
            raise json.JSONDecodeError(f"expected {sign!r}", self._text, self._at)
        self._at += 1

    def _value(self) -> Any:
        self._next()
        value, self._at = _decoder.raw_decode(self._text, self._at)
        return value

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        self._take(opening)
        while self._next() != closing:
            yield
            if self._next() != closing:
                self._take(",")
        self._take(closing)

    def _names(self) -> Iterator[str]:
        for _ in self._items("{", "}"):
            name = self._value()
            self._take(":")
            yield name

    def _hand_out(self) -> None:
        line, counted, last = 1, 0, 0
        for _ in self._items("[", "]"):
            self._next()
            line += self._text.count("\n", counted, self._at)
            counted = self._at
            last = max(last + 1, line)
            record = self._value()
            if not isinstance(record, dict):
                raise json.JSONDecodeError("a record that is no object", self._text, counted)
            self.count += 1
            self._take_record(last, record)


def _failure(errors: Any) -> str | None:
    """The first error that is more than that nothing was found."""
    for error in errors if isinstance(errors, list) else ():
        said = error if isinstance(error, dict) else {"error": error}
        code = said.get("error_number", said.get("error_code"))
        words = [str(said[name]) for name in ("error", "description") if said.get(name)]
        if code != NOTHING_FOUND and not any(text.startswith("Nothing found") for text in words):
            return ": ".join(words) or f"number {code}"
    return None


def _written_by(meta: Any) -> str:
    """`Slurm 22.05.8, openapi/dbv0.0.38`, as far as the document says it."""
    if not isinstance(meta, dict):
        return ""
    slurm = meta.get("Slurm") or meta.get("slurm") or {}
    plugin = meta.get("plugin") or {}
    parts = [
        f"Slurm {slurm['release']}" if slurm.get("release") else "",
        plugin.get("data_parser") or plugin.get("type"),
    ]
    return ", ".join(part for part in parts if part)


def number(value: Any) -> int | float | str | None:
    """A number, however it is wrapped; `UNLIMITED` if it has no limit, None if it is not set."""
    if type(value) is int:
        return None if value in NOT_SET else value
    if isinstance(value, dict):
        if value.get("infinite"):
            return "UNLIMITED"
        return number(value.get("number")) if value.get("set", True) else None
    if isinstance(value, bool) or value in NOT_SET:
        return None
    return value if isinstance(value, _PLAIN) else None


def text(value: Any) -> str | None:
    """A value as sacct prints it; an empty one is none."""
    if value is None:
        return None
    if type(value) is str:
        return value.strip() or None
    if isinstance(value, list):
        return ",".join(filter(None, map(text, value))) or None
    found = number(value)
    return None if found is None else str(found).strip() or None


def state(value: Any) -> str | None:
    """The state itself; further words of a list are flags such as COMPLETING."""
    return text(value[0] if isinstance(value, list) and value else value)


def _tres(listed: Any) -> str | None:
    """`[{type: gres, name: gpu, count: 4}]` as `gres/gpu=4`; memory is counted in MiB."""
    items = []
    for item in listed or ():
        count = number(item.get("count"))
        if count is not None:
            name = f"{item['type']}/{item['name']}" if item.get("name") else item["type"]
            items.append(f"{name}={count}{'M' if name == 'mem' else ''}")
    return ",".join(items) or None


def _exit_code(value: Any) -> str | None:
    """`return code:signal`; slurmctld gives the status of wait(2), which holds both."""
    if isinstance(value, dict) and "return_code" in value:
        signal = value.get("signal") or {}
        return f"{number(value['return_code']) or 0}:{number(signal.get('signal_id') or signal.get('id')) or 0}"
    status = number(value)
    return f"{status >> 8}:{status & 127}" if isinstance(status, int) else None


def _job_id(raw: str | None, array: Any, task: Any, tasks: Any, het: Any, offset: Any) -> str | None:
    """`12_3` of an array, `12_[4-9]` of its tasks that wait, `12+1` of a heterogeneous job."""
    if number(array):
        if (one := text(task)) is not None:
            return f"{number(array)}_{one}"
        if waiting := text(tasks):
            return f"{number(array)}_[{waiting.strip('[]')}]"
    return f"{number(het)}+{text(offset) or 0}" if number(het) else raw


def sacct_columns(job: Record) -> dict[str, str | None]:
    """A job in the columns of sacct, whichever daemon described it."""
    try:
        return _of_slurmctld(job) if "job_state" in job else _of_slurmdbd(job)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        raise ValueError(f"a job that cannot be read: {error}") from error


def _of_slurmdbd(job: Record) -> dict[str, str | None]:
    times, array, het = job["time"], job.get("array") or {}, job.get("het") or {}
    association, comment = job.get("association") or {}, job.get("comment")
    raw = text(job["job_id"])
    return {
        "JobIDRaw": raw,
        "JobID": _job_id(
            *(raw, array.get("job_id"), array.get("task_id"), array.get("task")),
            *(het.get("job_id"), het.get("job_offset")),
        ),
        "JobName": text(job.get("name")),
        "User": text(job.get("user")) or text(association.get("user")),
        "Account": text(job.get("account")) or text(association.get("account")),
        "Cluster": text(job.get("cluster")),
        "Partition": text(job.get("partition")),
        "QOS": text(job.get("qos")),
        "State": state(job["state"]["current"]),
        "Submit": text(times.get("submission")),
        "Start": text(times["start"]),
        "End": text(times["end"]),
        "ElapsedRaw": text(times.get("elapsed")),
        "Suspended": text(times.get("suspended")),
        "TimelimitRaw": text(times.get("limit")),
        "AllocTRES": _tres((job.get("tres") or {}).get("allocated")),
        "NodeList": text(job.get("nodes")),
        "ExitCode": _exit_code(job.get("exit_code")),
        "Comment": text(comment.get("job") if isinstance(comment, dict) else comment),
    }


def _of_slurmctld(job: Record) -> dict[str, str | None]:
    raw, now = text(job["job_id"]), state(job["job_state"])
    # While a job runs, its end is where its limit would stop it, and while it waits, its start is a guess.
    end = None if now in UNFINISHED else text(job.get("end_time"))
    return {
        "JobIDRaw": raw,
        "JobID": _job_id(
            *(raw, job.get("array_job_id"), job.get("array_task_id"), job.get("array_task_string")),
            *(job.get("het_job_id"), job.get("het_job_offset")),
        ),
        "JobName": text(job.get("name")),
        "User": text(job.get("user_name")),
        "Account": text(job.get("account")),
        "Cluster": text(job.get("cluster")),
        "Partition": text(job.get("partition")),
        "QOS": text(job.get("qos")),
        "State": now,
        "Submit": text(job.get("submit_time")),
        "Start": text(job["start_time"]),
        "End": end,
        "Suspended": _suspended(job),
        "TimelimitRaw": text(job.get("time_limit")),
        "AllocTRES": text(job.get("tres_alloc_str")),
        "AllocCPUS": text(job.get("cpus")),
        "NodeList": text(job.get("nodes")),
        "ExitCode": _exit_code(job.get("exit_code")),
        "Comment": text(job.get("comment")),
    }


def _suspended(job: Record) -> str | None:
    """slurmctld knows when a job was last suspended or resumed, and how long it had run by then."""
    at, start, ran = (number(job.get(name)) for name in ("suspend_time", "start_time", "pre_sus_time"))
    if not isinstance(at, int) or not isinstance(start, int) or not at:
        return None
    return str(max(0, at - start - (ran if isinstance(ran, int) else 0)))
