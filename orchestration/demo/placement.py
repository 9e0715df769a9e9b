"""The scheduler of the demo world: puts requests on nodes so that nothing is held twice.

An event loop over submissions, ends, and nodes that come, go, break and are drained: first come, first served
with backfill, and nodes kept free for a large job that has waited long enough.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from .clock import DAY, HOUR, MINUTE, PERIOD_START, WARM_UP
from .company import MIG_CORES, MIG_GPUS, MIG_MEMORY_GIB, MIG_NODE, MIG_SLICES, POOL_PARTITIONS
from .fleet import Fleet, Reservation
from .workload import Request

BACKFILL_DEPTH = 14
PATIENCE = 40 * MINUTE
_FOREVER = 1 << 60
_END, _LEAVE, _BREAK, _JOIN, _MEND, _SUBMIT = range(6)
"""Kinds of events, in the order in which they happen within one second."""


@dataclass(slots=True, eq=False)
class Run:
    """A request on its nodes. A requeued job has several."""

    request: Request
    start: int
    end: int | None
    """None: still running when the world ends."""
    state: str
    nodes: list[str]
    gpu_masks: list[int]
    """Which GPUs of each node, as bits (MIG: which slices)."""
    submit: int = 0
    suspended: int = 0
    ends_at: int = 0


@dataclass(slots=True, eq=False)
class _Node:
    name: str
    gpus: int
    free_mask: int
    cores: int
    memory: int
    partitions: tuple[str, ...] = ()
    """Empty while the node does not exist."""
    broken: int = 0
    """How many outages it is in."""
    runs: list[Run] = field(default_factory=list)
    reservations: list[Reservation] = field(default_factory=list)
    claimed_by: int = -1
    claimed_until: int = 0


def place(cluster: str, asked: list[Request], fleet: Fleet, end: int) -> tuple[list[Run], list[Request]]:
    """Runs that started before `end`, in order of start, and the requests that still wait then."""
    return _Scheduler(cluster, asked, fleet, end).run()


class _Scheduler:
    def __init__(self, cluster: str, asked: list[Request], fleet: Fleet, end: int) -> None:
        self.end = end
        self.runs: list[Run] = []
        self.events: list[tuple[int, int, int, object]] = []
        self.nodes: dict[str, _Node] = {}
        self.queues: dict[str, list[tuple[int, int, Request]]] = {}
        """Waiting requests per partition, as (submission, remaining seconds, request)."""
        self.partition_nodes: dict[str, list[_Node]] = {}
        self.serial = 0
        for stay in fleet.stays:
            if stay.cluster == cluster and (stay.end is None or stay.end > PERIOD_START - WARM_UP):
                for name, partitions in self._virtual(stay):
                    joined = max(stay.start, PERIOD_START - WARM_UP)
                    self._at(joined, _JOIN, (name, partitions))
                    if stay.end is not None:
                        moves = any(s.node == stay.node and s.start == stay.end for s in fleet.stays)
                        self._at(stay.end, _LEAVE, (name, moves))
        for outage in fleet.outages:
            if outage.cluster == cluster:
                self._at(outage.start, _BREAK, (outage.node, outage.state))
                if outage.end is not None:
                    self._at(outage.end, _MEND, (outage.node, ""))
        for reservation in fleet.reservations:
            for name in reservation.nodes:
                if name in self.nodes:
                    self.nodes[name].reservations.append(reservation)
        for request in asked:
            if request.cluster == cluster:
                self._at(request.submit, _SUBMIT, request)

    def _virtual(self, stay) -> list[tuple[str, tuple[str, ...]]]:
        """The schedulable parts of a node: one, except that MIG slices are a small node of their own."""
        machine = stay.machine
        partitions = POOL_PARTITIONS[stay.pool]
        cores, memory, gpus = machine.cores, machine.memory_gib * 1024, machine.gpus
        if stay.pool == "nimbus-a100":
            partitions = ("a100",)
        if stay.node != MIG_NODE:
            self._add(stay.node, gpus, cores, memory)
            return [(stay.node, partitions)]
        slices = f"{stay.node}/mig"
        self._add(stay.node, gpus - len(MIG_GPUS), cores - MIG_CORES, memory - MIG_MEMORY_GIB * 1024)
        self._add(slices, MIG_SLICES * len(MIG_GPUS), MIG_CORES, MIG_MEMORY_GIB * 1024)
        return [(stay.node, partitions), (slices, ("mig",))]

    def _add(self, name: str, gpus: int, cores: int, memory: int) -> None:
        if name not in self.nodes:
            self.nodes[name] = _Node(name, gpus, (1 << gpus) - 1, cores, memory)

    def _at(self, time: int, kind: int, what: object) -> None:
        self.serial += 1
        heapq.heappush(self.events, (time, kind, self.serial, what))

    def run(self) -> tuple[list[Run], list[Request]]:
        while self.events and self.events[0][0] < self.end:
            now, kind, _, what = heapq.heappop(self.events)
            if kind == _SUBMIT:
                self.queues.setdefault(what.partition, []).append((now, what.seconds, what))
                self._schedule(what.partition, now)
            elif kind == _END:
                if what.end is None and what.ends_at == now:
                    self._finish(what, now, what.request.outcome)
                    self._schedule(what.request.partition, now)
            else:
                self._change(kind, now, *what)
        waiting = [request for queue in self.queues.values() for _, _, request in queue]
        self.runs.sort(key=lambda r: (r.start, r.request.number))
        return self.runs, waiting

    def _change(self, kind: int, now: int, name: str, detail: object) -> None:
        """A node joins, leaves, breaks or is mended."""
        node = self.nodes[name]
        if kind == _JOIN:
            node.partitions = detail
        elif kind == _LEAVE:
            node.partitions = ()
            if not detail:  # moved to another pool: its jobs go on
                for run in list(node.runs):
                    self._lose(run, now, "PREEMPTED")
        elif kind == _BREAK:
            node.broken += 1
            if detail == "DOWN":
                for run in list(node.runs):
                    self._lose(run, now, "NODE_FAIL")
        else:
            node.broken -= 1
        self.partition_nodes.clear()
        for other in self.nodes.values():
            other.claimed_by = -1
        for partition in list(self.queues):
            self._schedule(partition, now)

    def _finish(self, run: Run, now: int, state: str) -> None:
        run.end, run.state = now, state
        for name, mask in zip(run.nodes, run.gpu_masks, strict=True):
            node = self.nodes[name]
            node.free_mask |= mask
            node.cores += run.request.cores
            node.memory += run.request.memory_mib
            node.runs.remove(run)

    def _lose(self, run: Run, now: int, state: str) -> None:
        """The node was taken away under the job: it starts again from its last checkpoint, or not at all."""
        self._finish(run, now, state)
        request = run.request
        if request.requeue and (request.kind or request.cluster != "nimbus"):  # nobody restarts a bare pod
            kept = 0 if request.kind == "ReplicaSet" else max(0, now - run.start - HOUR)
            left = max(MINUTE, run.ends_at - run.start - kept)
            self.queues.setdefault(request.partition, []).append((now, left, request))

    def _schedule(self, partition: str, now: int) -> None:
        queue = self.queues.get(partition)
        if not queue:
            return
        refused: list[Request] = []
        for position, (submit, seconds, request) in enumerate(queue[:BACKFILL_DEPTH]):
            if any(
                r.nodes <= request.nodes
                and r.gpus <= request.gpus
                and r.cores <= request.cores
                and r.memory_mib <= request.memory_mib
                and r.account == request.account
                for r in refused
            ):
                continue  # asks for no less than one that was just refused
            nodes = self._fitting(partition, request, seconds, now)
            if nodes:
                self._start(nodes, request, submit, seconds, now)
                queue[position] = None
            else:
                refused.append(request)
                if position == 0 and request.gpus >= 8 and now - submit > PATIENCE:
                    self._claim(partition, request, now)
        queue[:] = [entry for entry in queue if entry is not None]

    def _members(self, partition: str) -> list[_Node]:
        if partition not in self.partition_nodes:
            self.partition_nodes[partition] = [
                node for node in self.nodes.values() if partition in node.partitions and not node.broken
            ]
        return self.partition_nodes[partition]

    def _fitting(self, partition: str, request: Request, seconds: int, now: int) -> list[_Node]:
        """The fullest nodes that still have room, so that whole nodes stay free for whole-node jobs."""
        found = []
        ends = now + seconds
        for node in self._members(partition):
            if node.cores < request.cores or node.memory < request.memory_mib:
                continue
            free = node.free_mask.bit_count()
            if free < request.gpus or (request.gpus == 8 and free < 8):
                continue
            if node.claimed_by >= 0 and node.claimed_by != request.number and ends > node.claimed_until:
                continue
            if node.reservations and not _allowed(node.reservations, request, now, ends):
                continue
            found.append((free, node.cores, node.name, node))
        if len(found) < request.nodes:
            return []
        found.sort(key=lambda entry: entry[:3])
        return [entry[3] for entry in found[: request.nodes]]

    def _start(self, nodes: list[_Node], request: Request, submit: int, seconds: int, now: int) -> None:
        run = Run(request, now, None, "RUNNING", [], [], submit, 0, now + seconds)
        for node in sorted(nodes, key=lambda n: n.name):
            mask, taken = 0, 0
            while taken < request.gpus:
                bit = node.free_mask & -node.free_mask
                node.free_mask ^= bit
                mask |= bit
                taken += 1
            node.cores -= request.cores
            node.memory -= request.memory_mib
            node.runs.append(run)
            run.nodes.append(node.name)
            run.gpu_masks.append(mask)
        for node in self.nodes.values():
            if node.claimed_by == request.number:
                node.claimed_by = -1
        self.runs.append(run)
        self._at(run.ends_at, _END, run)

    def _claim(self, partition: str, request: Request, now: int) -> None:
        """Keep the nodes that will be free first for a large job; short jobs may still slip in before."""
        if any(
            node.claimed_by >= 0 and node.partitions and partition in node.partitions and not node.broken
            for node in self.nodes.values()
        ):
            return
        free_at = []
        for node in self._members(partition):
            clear = max((run.ends_at for run in node.runs), default=now)
            if _allowed(node.reservations, request, now, clear + request.seconds):
                free_at.append((clear, node.name, node))
        free_at.sort(key=lambda entry: entry[:2])
        chosen = free_at[: request.nodes]
        if len(chosen) == request.nodes:
            for _, _, node in chosen:
                node.claimed_by, node.claimed_until = request.number, chosen[-1][0]


def _allowed(reservations: list[Reservation], request: Request, start: int, end: int) -> bool:
    """Whether a job may run on a node with these reservations: its own, or none in its way."""
    for reservation in reservations:
        mine = request.account in reservation.accounts or request.user in reservation.users
        if not mine and start < reservation.end and end > reservation.start:
            return False
    return True


def end_of(run: Run, otherwise: int = _FOREVER) -> int:
    """When a run ended, or `otherwise` for one that goes on."""
    return otherwise if run.end is None else run.end


def active(runs: list[Run], day: int) -> list[Run]:
    """Runs that overlap the UTC day, zero-second ones included."""
    return [
        run
        for run in runs
        if run.start < day + DAY and (end_of(run) > day or (run.end == run.start and run.start >= day))
    ]
