"""The demo world as it happened: the fleet, every run on it, and a few deliberate oddities.

All file writers read this one world, so that bills, dumps and telemetry tell the same story.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from zlib import crc32

from .clock import DAY, DUMP_DELAY, HOUR, MINUTE, PERIOD_START, at
from .company import ALL_CLUSTERS
from .fleet import Fleet, build_fleet
from .placement import Run, end_of, place
from .workload import Request, requests

REDELIVERED_DAY, REDELIVERED_AT = at("2026-01-20"), at("2026-01-23T09:15")
"""cirrus delivers this day's dump a second time, with one job less and one more."""
URGENT_NUMBER = 481_990


@dataclass(frozen=True)
class World:
    seed: int
    end: int
    """First second after the period."""
    fleet: Fleet
    runs: dict[str, list[Run]]
    """Per cluster: what overlaps the period, in order of start."""
    waiting: dict[str, list[Request]]
    withdrawn: Run | None
    """In the first dump of the re-delivered day, not in the second."""
    belated: Run | None
    """The other way round."""

    @property
    def days(self) -> range:
        return range(PERIOD_START, self.end, DAY)


@dataclass(frozen=True)
class Part:
    """What the scheduler and the telemetry call one piece of a run."""

    label: str
    """JobIDRaw, or the pod's name."""
    job_id: str
    """JobID, or the name of the pod's controller."""
    nodes: list[str]
    gpu_masks: list[int]


def build_world(seed: int, days: int) -> World:
    end = PERIOD_START + days * DAY
    fleet = build_fleet(seed)
    asked = requests(seed, end, fleet.stays)
    runs, waiting = {}, {}
    for cluster in ALL_CLUSTERS:
        # up to the last dump, which knows what ended shortly after midnight
        placed, left = place(cluster, asked, fleet, end + DUMP_DELAY)
        runs[cluster] = [run for run in placed if run.start < end and end_of(run) >= PERIOD_START]
        waiting[cluster] = left
    _suspend_some(runs["alps"])
    _fail_some_boots(runs["cirrus"])
    withdrawn, belated = _redelivered(runs["cirrus"]) if end > REDELIVERED_AT else (None, None)
    return World(seed, end, fleet, runs, waiting, withdrawn, belated)


def _suspend_some(runs: list[Run]) -> None:
    """Some long jobs were suspended for a while. For one of them an urgent job took the same GPUs meanwhile:
    the only time at which a node is held beyond its capacity."""
    suspended = [
        run
        for run in runs
        if run.start >= PERIOD_START + 6 * HOUR
        and run.request.gpus == 8
        and len(run.nodes) == 1
        and run.end is not None
        and run.end - run.start > 4 * HOUR
        and run.request.account != "vision"
    ]
    for run in suspended[::40]:
        run.suspended = 40 * MINUTE
    if suspended:
        host = suspended[0]
        start = host.start + HOUR
        request = replace(
            host.request,
            number=URGENT_NUMBER,
            array_index=-1,
            array_size=0,
            submit=start - 20,
            seconds=40 * MINUTE,
            user="viktor",
            account="vision",
            comment="project=vision-gen run=1",
            name="urgent-demo",
            qos="urgent",
            outcome="COMPLETED",
        )
        urgent = Run(request, start, start + 40 * MINUTE, "COMPLETED", host.nodes, host.gpu_masks, start - 20)
        runs.append(urgent)
        runs.sort(key=lambda run: (run.start, run.request.number))


def _fail_some_boots(runs: list[Run]) -> None:
    """Some rented nodes came up broken: what was put on them ended at once, with idle GPUs."""
    for run in runs:
        request = run.request
        rented = request.partition in ("burst", "spot") and run.state == "FAILED"
        if rented and run.end - run.start < 10 * MINUTE and mix(request.number, "boot") % 3 == 0:
            run.state = "BOOT_FAIL"
            run.request = replace(request, activity=replace(request.activity, util=0))


def _redelivered(runs: list[Run]) -> tuple[Run, Run]:
    inside = [
        run
        for run in runs
        if run.start > REDELIVERED_DAY
        and end_of(run) < REDELIVERED_DAY + DAY
        and run.end > run.start
        and run.state == "COMPLETED"
        and len(run.nodes) == 1
    ]
    return inside[4], inside[9]


def mix(*parts: object) -> int:
    """A stable number from a few values, for details that need no random stream of their own."""
    return crc32("/".join(map(str, parts)).encode())


def parts(run: Run) -> Iterator[Part]:
    """The pieces of a run that have a name of their own: het components, pods."""
    request = run.request
    if request.cluster == "nimbus":
        controller = _controller(request)
        for position, (node, mask) in enumerate(zip(run.nodes, run.gpu_masks, strict=True)):
            pod = f"{controller}-{mix(request.number, run.start, position):08x}"[:-3]
            if request.kind in ("", "StatefulSet"):
                pod = f"{controller}-0" if request.kind else controller
            yield Part(pod, controller, [node], [mask])
    elif request.is_het:
        for position, (node, mask) in enumerate(zip(run.nodes, run.gpu_masks, strict=True)):
            yield Part(str(request.number + position), f"{request.number}+{position}", [node], [mask])
    else:
        job_id = str(request.number)
        if request.array_size:
            job_id = f"{request.array_number}_{request.array_index}"
        yield Part(str(request.number), job_id, run.nodes, run.gpu_masks)


def _controller(request: Request) -> str:
    if request.kind == "ReplicaSet":
        return request.name
    if request.kind == "StatefulSet":
        return f"notebook-{request.user}-{request.number}"
    # bare pods have no controller that could be shared, so each has its own name
    return f"{request.name}-{request.array_number if request.kind and request.array_size else request.number}"
