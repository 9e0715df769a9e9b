"""What people ask of the clusters: jobs and pods with their size, length, owner and fate.

The shape follows published traces of GPU clusters: most jobs are small and short, a few large ones take most
of the GPU time, nights and weekends are quieter, a third of the jobs do not complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

import numpy as np

from . import company
from .clock import DAY, HOUR, MINUTE, PERIOD_START, WARM_UP, at, day_name, dice
from .demands import DEMANDS, JOB_NAMES, LARGE_JOB_NAMES, POOL_MACHINES, Demand
from .fleet import Stay

T = TypeVar("T")


@dataclass(slots=True)
class Activity:
    """How busy a job keeps its GPUs, in percent and thousandths."""

    util: int
    sm_permille: int
    tensor_permille: int
    memory_percent: int
    warm_up_minutes: int
    checkpoint_minutes: int


@dataclass(slots=True)
class Request:
    """A job (or one task of an array, or a set of equal pods) as submitted."""

    cluster: str
    partition: str
    submit: int
    seconds: int
    nodes: int
    gpus: int
    cores: int
    memory_mib: int
    """GPUs, cores and memory are per node."""
    user: str
    account: str
    namespace: str
    comment: str
    name: str
    qos: str
    outcome: str
    requeue: bool
    activity: Activity
    array_index: int = -1
    array_size: int = 0
    is_het: bool = False
    kind: str = ""
    """Kubernetes: the kind of the controller; empty for a bare pod."""
    asks: bool = True
    """False for pods that state no requests for cores and memory."""
    number: int = 0
    """JobIDRaw; for pods the running number that makes names unique."""
    array_number: int = 0


_HOUR_WEIGHTS = np.array([2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 9, 8, 9, 10, 9, 8, 7, 5, 4, 4, 3, 3, 2], dtype=float)
_OUTCOMES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
_OUTCOME_SHARES = (0.675, 0.155, 0.095, 0.05, 0.025)
_DEADLINE = at("2026-01-26"), at("2026-01-31")


def requests(seed: int, end: int, stays: list[Stay]) -> list[Request]:
    """Every request submitted before `end`, numbered in order of submission within its cluster."""
    found: list[Request] = list(_services())
    for demand in DEMANDS:
        for day in range(PERIOD_START - WARM_UP, end, DAY):
            found += _day(seed, demand, day, stays)
    found.sort(key=lambda r: (r.cluster, r.submit, r.partition, r.name, r.array_index, r.user))
    _number(found)
    return found


def _pick(rng: np.random.Generator, options: tuple[T, ...], weights: tuple[float, ...]) -> T:
    """One of a few options by weight (numpy's own `choice` takes ten times as long for a single draw)."""
    draw = rng.random() * sum(weights)
    for option, weight in zip(options, weights, strict=True):
        draw -= weight
        if draw < 0:
            return option
    return options[-1]


@cache
def _people(team: str, date: str) -> list[str]:
    return [user for user in company.USER_IDS if company.team_of(user, date) == team]


def _capacity_hours(demand: Demand, day: int, stays: list[Stay]) -> float:
    """GPU-hours (core-hours without GPUs) of the pool on that day."""
    total = 0.0
    for stay in stays:
        if stay.pool == demand.pool:
            seconds = min(day + DAY, stay.end or day + DAY) - max(day, stay.start)
            total += max(0, seconds) / HOUR * (stay.machine.gpus or stay.machine.cores)
    return total


def _day(seed: int, demand: Demand, day: int, stays: list[Stay]) -> Iterator[Request]:
    capacity = _capacity_hours(demand, day, stays)
    rng = dice(seed, "requests", demand.cluster, demand.partition, day)
    weekend = (day // DAY + 3) % 7 >= 5
    rush = 1.35 if _DEADLINE[0] <= day < _DEADLINE[1] else 1.0
    usual = 8 * 24 * 3 if demand.partition == "burst" else capacity
    count = int(demand.per_day * (0.5 if weekend else 1.1) * rush * min(1.6, capacity / usual))
    if count == 0:
        return
    load = demand.load * (0.86 if weekend else 1.0) * rush
    draft = _draft(rng, demand, count, load * capacity)
    weights = _HOUR_WEIGHTS + 3 if weekend else _HOUR_WEIGHTS
    if demand.partition == "burst":  # asked for while the burst nodes are up
        weights = np.where((np.arange(24) >= 7) & (np.arange(24) < 20), weights, 0)
    hours = rng.choice(24, count, p=weights / weights.sum())
    submit = day + hours * HOUR + rng.integers(0, HOUR, count)
    i = 0
    while i < count:
        tasks = 1
        if draft["size"][i] <= 8 and rng.random() < 0.035:
            tasks = min(int(rng.integers(3, 25)), count - i)
        first = _request(rng, demand, day, int(submit[i]), draft, i)
        if tasks > 1 or rng.random() < 0.01:
            for k in range(tasks):  # tasks of an array are alike but for their length and fate
                yield replace(
                    first,
                    seconds=int(draft["seconds"][i + k]),
                    outcome=_OUTCOMES[draft["outcome"][i + k]],
                    array_index=k,
                    array_size=tasks,
                )
        else:
            yield first
        i += tasks


def _draft(rng: np.random.Generator, demand: Demand, count: int, hours: float) -> dict[str, np.ndarray]:
    """Sizes, lengths and fates of a day's jobs; long jobs are stretched so that the day asks for `hours`."""
    sizes, shares = np.array(list(demand.sizes)), np.array(list(demand.sizes.values()))
    size = rng.choice(sizes, count, p=shares / shares.sum())
    median = demand.median_minutes * MINUTE * np.maximum(1, size / 4) ** 0.7
    seconds = np.minimum(median * np.exp(rng.standard_normal(count) * 1.45), demand.max_hours * HOUR)
    outcome = rng.choice(len(_OUTCOMES), count, p=_OUTCOME_SHARES)
    seconds = np.where(outcome == 1, seconds * rng.uniform(0.02, 0.7, count), seconds)
    long = (seconds > 40 * MINUTE) & (size > 0)
    asked, rest = (size * seconds)[long].sum() / HOUR, (size * seconds)[~long].sum() / HOUR
    if asked > 0:
        seconds = np.where(long, seconds * np.clip((hours - rest) / asked, 0.25, 8), seconds)
    seconds = np.minimum(seconds, demand.max_hours * HOUR)
    seconds = np.where(rng.random(count) < 0.004, 0, np.maximum(seconds, 8))
    # a time limit is a round number
    seconds = np.where(outcome == 3, np.ceil(seconds / (30 * MINUTE)) * 30 * MINUTE, seconds)
    return {"size": size, "seconds": seconds.astype(np.int64), "outcome": outcome}


def _request(rng: np.random.Generator, demand: Demand, day: int, submit: int, draft: dict, i: int) -> Request:
    size, seconds = int(draft["size"][i]), int(draft["seconds"][i])
    machine = POOL_MACHINES[demand.pool]
    nodes = max(1, size // 8) if machine.gpus else 1
    gpus = size // nodes if machine.gpus else 0
    cores, memory_gib = _cores_and_memory(rng, demand, machine, gpus, size)
    team = _pick(rng, tuple(demand.teams), tuple(demand.teams.values()))
    people = _people(team, day_name(day))
    user = people[int(len(people) * rng.random() ** 1.8)]
    projects = company.PROJECTS[team]
    project = projects[int(rng.random() * len(projects))]
    comment = f"project={project} run={rng.integers(100, 999)}" if rng.random() < 0.22 else ""
    account, namespace, kind, asks = "", "", "", True
    if demand.cluster == "nimbus":
        namespace = "notebooks" if demand.partition == "mig" else company.NAMESPACES[team]
        if rng.random() < 0.05:
            namespace = company.UNKNOWN_NAMESPACES[rng.integers(2)]
        kind = ("Job", "Job", "PyTorchJob", "Workflow", "")[rng.integers(5)]
        kind = "StatefulSet" if demand.partition == "mig" else kind
        asks = rng.random() > 0.07
        comment = f"team={team}" if namespace == "notebooks" and rng.random() < 0.85 else ""
    else:
        draw = rng.random()
        account = team
        if draw < 0.04:
            account = company.UNKNOWN_ACCOUNTS[rng.integers(2)]
            user = company.UNKNOWN_USERS[rng.integers(3)]
            comment = ""
        elif user in company.MOVERS or draw < 0.27:
            account = company.PERSONAL_ACCOUNT
        elif draw < 0.47:
            account = company.PROJECT_ACCOUNTS.get(team, team)
    if rng.random() < 0.05 and comment == "":
        comment = "please do not kill, ticket 4711"  # free text is no label
    names = LARGE_JOB_NAMES if nodes > 1 else JOB_NAMES[demand.partition]
    return Request(
        cluster=demand.cluster,
        partition=demand.partition,
        submit=submit,
        seconds=seconds,
        nodes=nodes,
        gpus=gpus,
        cores=cores,
        memory_mib=int(memory_gib * 1024),
        user=user,
        account=account,
        namespace=namespace,
        comment=comment,
        name=f"{names[rng.integers(len(names))]}-{project}",
        qos="low" if demand.partition == "spot" else "high" if rng.random() < 0.04 else "normal",
        outcome=_OUTCOMES[draft["outcome"][i]],
        requeue=demand.partition == "spot" or rng.random() < 0.6,
        activity=_activity(rng, demand, size),
        is_het=nodes == 2 and demand.cluster == "cirrus" and rng.random() < 0.25,
        kind=kind,
        asks=asks,
    )


def _cores_and_memory(
    rng: np.random.Generator, demand: Demand, machine: company.MachineType, gpus: int, size: int
) -> tuple[int, float]:
    """Cores and GiB per node. Some ask for more cores than their GPUs' share, which strands other GPUs."""
    if machine.gpus == 0:
        return size, min(size * _pick(rng, (1.5, 2.0, 3.5), (1, 1, 1)), machine.memory_gib)
    if demand.partition == "mig":
        return 2, 14.0
    if gpus == 0:
        return _pick(rng, (8, 16, 48), (1, 1, 1)), _pick(rng, (16.0, 62.5, 128.0), (1, 1, 1))
    if gpus < 8 and rng.random() < 0.06:
        return int(machine.cores * 0.6), machine.memory_gib * 0.25
    share = _pick(rng, (0.25, 0.5, 0.75, 1.0), (0.15, 0.35, 0.2, 0.3))
    cores = max(1, int(machine.cores * gpus / machine.gpus * share))
    gib = round(machine.memory_gib * gpus / machine.gpus * share * 0.9 * 2) / 2
    return cores, max(1.0, gib)


def _activity(rng: np.random.Generator, demand: Demand, size: int) -> Activity:
    mean = demand.util[1 if size >= 8 else 0]
    util = 0 if rng.random() < 0.05 else min(97, max(1, int(rng.beta(4, 4) * 2 * mean)))  # some just hang
    return Activity(
        util=util,
        sm_permille=int(rng.integers(450, 930)),
        tensor_permille=int(rng.integers(40, 620)),
        memory_percent=int(rng.integers(8, 97)),
        warm_up_minutes=int(rng.integers(1, 9)),
        checkpoint_minutes=_pick(rng, (30, 45, 60, 90), (1, 1, 1, 1)),
    )


def _services() -> Iterator[Request]:
    """Inference services: replicas that run for weeks, one of them rolled over in the middle of a month."""
    services = (
        ("assistant-serving", "assistant-chat-7c9d", 11, "2025-12-29T02:00", "2026-01-14T13:30", "tariq"),
        ("assistant-serving", "assistant-chat-9f4b", 13, "2026-01-14T13:31", None, "tariq"),
        ("search-embed", "search-vectors-55d8", 8, "2025-12-29T02:30", None, "ines"),
        ("monitoring", "gpu-burnin-0", 1, "2025-12-29T03:00", None, ""),
    )
    for number, (namespace, name, replicas, start, end, user) in enumerate(services):
        activity = Activity(26 + 7 * number, 610, 240, 71, 4, 60)
        for replica in range(replicas):
            yield Request(
                cluster="nimbus",
                partition="l4",
                submit=at(start) + replica,
                seconds=at(end) - at(start) if end else 400 * DAY,
                nodes=1,
                gpus=1,
                cores=6,
                memory_mib=24 * 1024,
                user=user,
                account="",
                namespace=namespace,
                comment="",
                name=name,
                qos="",
                outcome="COMPLETED",
                requeue=True,
                activity=activity,
                array_index=replica,
                array_size=replicas,
                kind="ReplicaSet",
                asks=namespace != "monitoring",
            )


def _number(found: list[Request]) -> None:
    """Give ids in order of submission: each task and each het component has its own; the last task of an
    array has the array's own number, as in Slurm."""
    counters = {"alps": 482_000, "cirrus": 91_000, "nimbus": 1}
    for request in found:
        if request.array_size and request.array_index == 0:
            array = counters[request.cluster]
            counters[request.cluster] += request.array_size
        if request.array_size:
            request.array_number = array
            request.number = array + (request.array_index + 1) % request.array_size
        else:
            request.number = counters[request.cluster]
            counters[request.cluster] += 2 if request.is_het else 1
