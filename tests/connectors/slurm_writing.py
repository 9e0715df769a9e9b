"""Random jobs, and writers for every form in which Slurm could have told them. Nothing here is the connector's."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

ZONE = ZoneInfo("Europe/Zurich")
STATES = (
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "PREEMPTED",
    "OUT_OF_MEMORY",
    "REQUEUED",
    "RUNNING",
)
PLAIN_NAMES = (
    "train",
    "ünï çödé",
    'say "hi"',
    "a=b",
    "tab\there",
    "semi;colon",
    "comma, space",
    "caret^hat~",
    "#1",
    "日本",
)
UGLY_NAMES = (*PLAIN_NAMES, "pipe|name", "a|#b", "two\nlines", "x\n\ny|z", "us\x1fsep", "1|2\n3|4", "|", "tail\n")


@dataclass(frozen=True)
class Job:
    raw: int
    shown: str
    name: str
    user: str
    account: str
    partition: str
    qos: str
    state: str
    submit: int
    start: int
    end: int | None
    suspended: int
    limit: int
    cores: int
    memory: int
    """MiB."""
    gpus: int
    gpu_type: str | None
    nodes: int
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def elapsed(self) -> int:
        return (self.end or self.start) - self.start - self.suspended

    @property
    def node_names(self) -> list[str]:
        return [f"n{number:03}" for number in range(self.raw % 90, self.raw % 90 + self.nodes)]

    @property
    def comment(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.labels.items())

    def expected(self) -> dict[str, Any]:
        at = lambda seconds: datetime.fromtimestamp(seconds, UTC)  # noqa: E731
        return {
            "job_key": f"c:{self.raw}:{self.start}",
            "job_id": self.shown,
            "part_id": str(self.raw),
            "job_name": self.name.strip(),
            "user_name": self.user,
            "account": self.account,
            "partition": self.partition,
            "qos": self.qos,
            "state": self.state,
            "submit_at": at(self.submit),
            "start_at": at(self.start),
            "end_at": at(self.end) if self.end else None,
            "suspended_ms": self.suspended * 1000,
            "time_limit_ms": self.limit * 60_000,
            "cpu_millicores": self.cores * 1000,
            "memory_mib": self.memory,
            "gpu_units": self.gpus * 25_200,
            "node_names": ",".join(self.node_names),
            "labels": json.dumps(self.labels, separators=(",", ":")) if self.labels else None,
        }


def random_jobs(random: random.Random, count: int, names: tuple[str, ...]) -> list[Job]:
    return [_random_job(random, raw, names) for raw in random.sample(range(1000, 10_000), count)]


def _random_job(random: random.Random, raw: int, names: tuple[str, ...]) -> Job:
    start = _unambiguous(random, 1_767_225_600, 365 * 86_400)
    end = _unambiguous(random, start, random.choice([60, 7_200, 700_000]))
    is_running = (state := random.choice(STATES)) == "RUNNING"
    suspended = 0 if is_running else random.choice([0, 0, (end - start) // 3])
    shown = random.choice([str(raw), str(raw), f"{raw - 7}_{random.randrange(50)}", f"{raw - 1}+{random.randrange(3)}"])
    gpus = random.choice([0, 1, 2, 8])
    return Job(
        **{"raw": raw, "shown": shown, "name": random.choice(names), "user": random.choice(["ann", "bob-2", "c.d"])},
        **{"account": random.choice(["nlp", "vision"]), "partition": random.choice(["gpu", "cpu_long"])},
        **{"qos": "normal", "state": state, "submit": _unambiguous(random, start - 3_600, 1), "start": start},
        **{"end": None if is_running else end, "suspended": suspended, "limit": random.randrange(1, 10_000)},
        **{"cores": random.randrange(1, 300), "memory": random.choice([500, 4000, 62_500, 65_536, 2_097_152])},
        **{"gpus": gpus, "gpu_type": random.choice([None, "a100", "h100_80"]) if gpus else None},
        **{"nodes": random.randrange(1, 5), "labels": random.choice([{}, {"run": str(raw)}, {"run": "1", "p": "x=y"}])},
    )


def _unambiguous(random: random.Random, since: int, spread: int) -> int:
    """A second that the clock on the wall shows only once."""
    at = datetime.fromtimestamp(since + random.randrange(spread), UTC)
    while at.astimezone(ZONE).replace(fold=0).utcoffset() != at.astimezone(ZONE).replace(fold=1).utcoffset():
        at += timedelta(hours=1)
    return int(at.timestamp())


# --- text --------------------------------------------------------------------------------------------------

TIMES: dict[str, Callable[[int], str]] = {
    "epoch": str,
    "epoch with a fraction": lambda at: f"{at}.0",
    "local": lambda at: datetime.fromtimestamp(at, ZONE).strftime("%Y-%m-%dT%H:%M:%S"),
    "local with a space": lambda at: datetime.fromtimestamp(at, ZONE).strftime("%Y/%m/%d %H:%M:%S"),
    "offset": lambda at: datetime.fromtimestamp(at, timezone(timedelta(hours=5, minutes=30))).isoformat(),
    "offset without colon": lambda at: datetime.fromtimestamp(at, ZONE).strftime("%Y-%m-%dT%H:%M:%S%z"),
    "offset of hours": lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S+00"),
    "zulu": lambda at: datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
}


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    return (f"{days}-" if days else "") + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def _memory(mib: int, convert: bool) -> str:
    """sacct divides by 1024 as long as it is exact to two decimals or so, or not at all with --noconvert."""
    for unit, size in (("T", 1024**2), ("G", 1024)):
        if convert and mib >= size and mib * 100 % size == 0:
            return f"{mib / size:.2f}".removesuffix(".00") + unit
    return f"{mib}M"


def _tres(job: Job, convert: bool) -> str:
    items = [f"billing={job.cores}", f"cpu={job.cores}", f"mem={_memory(job.memory, convert)}", f"node={job.nodes}"]
    if job.gpus:
        items += [f"gres/gpu={job.gpus}", *([f"gres/gpu:{job.gpu_type}={job.gpus}"] if job.gpu_type else [])]
    return ",".join(sorted(items))


def cells(job: Job, at: Callable[[int], str], convert: bool) -> dict[str, str]:
    first, last = job.node_names[0], job.node_names[-1]
    return {
        "JobIDRaw": str(job.raw),
        "JobID": job.shown,
        "JobName": job.name,
        "User": job.user,
        "Account": job.account,
        "Partition": job.partition,
        "QOS": job.qos,
        "State": f"{job.state} by 1000" if job.state == "CANCELLED" else job.state,
        "Submit": at(job.submit),
        "Start": at(job.start),
        "End": at(job.end) if job.end else "Unknown",
        "ElapsedRaw": str(job.elapsed),
        "Suspended": _clock(job.suspended),
        "Timelimit": _clock(job.limit * 60),
        "AllocTRES": _tres(job, convert),
        "NodeList": first if first == last else f"n[{first[1:]}-{last[1:]}]",
        "ExitCode": "0:0",
        "Comment": job.comment,
    }


@dataclass(frozen=True)
class Dialect:
    """One way of calling sacct."""

    delimiter: str
    times: str
    columns: tuple[str, ...]
    has_header: bool = True
    has_last_delimiter: bool = False
    convert: bool = True
    newline: str = "\n"

    def lines(self, jobs: list[Job]) -> list[str]:
        rows = [cells(job, TIMES[self.times], self.convert) for job in jobs]
        end = self.delimiter if self.has_last_delimiter else ""
        texts = [self.delimiter.join(row[name] for name in self.columns) + end for row in rows]
        return [*([self.delimiter.join(self.columns) + end] if self.has_header else []), *texts]

    def text(self, jobs: list[Job]) -> str:
        return self.newline.join([*self.lines(jobs), ""])

    @property
    def settings(self) -> dict[str, Any]:
        zone = {"timezone": ZONE.key if self.times.startswith("local") else None}
        return zone if self.has_header else {**zone, "columns": [name.lower() for name in self.columns]}


def random_dialect(random: random.Random) -> Dialect:
    names = list(cells(_random_job(random, 1, PLAIN_NAMES), str, True))
    random.shuffle(names)
    return Dialect(
        delimiter=random.choice(["|", "\x1f", "|#", "\x01", " :: ", "<|>"]),
        times=random.choice(list(TIMES)),
        columns=tuple(names),
        has_last_delimiter=random.random() < 0.3,
        convert=random.random() < 0.5,
        newline=random.choice(["\n", "\r\n"]),
    )


# --- JSON --------------------------------------------------------------------------------------------------


def _listed_tres(job: Job) -> list[dict[str, Any]]:
    items = [("cpu", None, job.cores), ("mem", None, job.memory), ("energy", None, None), ("node", None, job.nodes)]
    if job.gpus:
        items += [("gres", "gpu", job.gpus), *([("gres", f"gpu:{job.gpu_type}", job.gpus)] if job.gpu_type else [])]
    return [{"type": kind, "name": name, "id": 1, "count": count} for kind, name, count in items]


def _set(number: int | None) -> dict[str, Any]:
    return {"set": number is not None, "infinite": False, "number": number or 0}


def _ids(job: Job, sign: str) -> tuple[int, int | None]:
    first, found, second = job.shown.partition(sign)
    return (int(first), int(second)) if found else (0, None)


def slurmdbd_22(job: Job) -> dict[str, Any]:
    (array, task), (het, offset) = _ids(job, "_"), _ids(job, "+")
    return {
        "account": job.account,
        "comment": {"administrator": None, "job": job.comment or None, "system": None},
        "array": {"job_id": array, "task": None, "task_id": task},
        "association": {"account": job.account, "cluster": "x", "user": job.user},
        "cluster": "x",
        "time": {
            **{"elapsed": job.elapsed, "eligible": job.submit, "end": job.end or 0, "start": job.start},
            **{"submission": job.submit, "suspended": job.suspended, "limit": job.limit},
        },
        "exit_code": {"status": "SUCCESS", "return_code": 0},
        "het": {"job_id": het, "job_offset": offset},
        "job_id": job.raw,
        "name": job.name,
        "nodes": ",".join(job.node_names),
        "partition": job.partition,
        "qos": job.qos,
        "state": {"current": job.state, "reason": "None"},
        "steps": [{"step": {"id": "batch"}, "tres": {"allocated": _listed_tres(job)}}],
        "tres": {"allocated": _listed_tres(job), "requested": []},
        "user": job.user,
    }


def slurmdbd_23(job: Job) -> dict[str, Any]:
    old = slurmdbd_22(job)
    flags = ["COMPLETING"] if job.end else []
    return {
        **old,
        "account": "",
        "user": "",
        "array": {"job_id": old["array"]["job_id"], "task_id": _set(old["array"]["task_id"]), "task": ""},
        "het": {"job_id": old["het"]["job_id"], "job_offset": _set(old["het"]["job_offset"])},
        "time": {**old["time"], "limit": _set(job.limit), "planned": _set(1)},
        "exit_code": {"status": ["SUCCESS"], "return_code": _set(0), "signal": {"id": _set(None), "name": ""}},
        "state": {"current": [job.state, *flags], "reason": "None"},
    }


def slurmctld(job: Job) -> dict[str, Any]:
    """What the controller says of a job: no elapsed time, and an end also while the job runs."""
    (array, task), (het, offset) = _ids(job, "_"), _ids(job, "+")
    resumed = (job.end or 0) - 1 if job.suspended else 0
    return {
        **{"job_id": job.raw, "name": job.name, "user_name": job.user, "account": job.account, "cluster": "x"},
        **{"partition": job.partition, "qos": job.qos, "comment": job.comment, "job_state": [job.state]},
        **{"array_job_id": _set(array), "array_task_id": _set(task), "array_task_string": ""},
        **{"het_job_id": _set(het), "het_job_offset": _set(offset), "cpus": _set(job.cores)},
        **{"submit_time": _set(job.submit), "start_time": _set(job.start), "time_limit": _set(job.limit)},
        "end_time": _set(job.end or job.start + 60 * job.limit),
        "suspend_time": _set(resumed),
        "pre_sus_time": _set(resumed - job.start - job.suspended if resumed else 0),
        "tres_alloc_str": _tres(job, True),
        "nodes": ",".join(job.node_names),
        "exit_code": {"status": ["SUCCESS"], "return_code": _set(0)},
    }


SHAPES: dict[str, Callable[[Job], dict[str, Any]]] = {
    "sacct 22.05": slurmdbd_22,
    "sacct 23.11": slurmdbd_23,
    "slurmrestd, controller": slurmctld,
}


def document(jobs: list[Job], shape: Callable[[Job], dict[str, Any]], indent: int | None = 1) -> str:
    meta = {"plugin": {"data_parser": "v0.0.40"}, "Slurm": {"release": "23.11.1"}}
    return json.dumps({"meta": meta, "jobs": [shape(job) for job in jobs], "errors": []}, indent=indent)
