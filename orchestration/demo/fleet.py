"""The machines over time: which node was in which pool from when to when, what broke, what was set aside."""

from __future__ import annotations

from dataclasses import dataclass

from .clock import DAY, HOUR, MAX_DAYS, MINUTE, PERIOD_START, at, dice
from .company import CLOUD, MACHINES, OWNED, MachineType

LAST = PERIOD_START + MAX_DAYS * DAY
_LONG_AGO = at("2024-06-01")


@dataclass(frozen=True)
class Stay:
    """A node's stay in a pool, under one resource id (what the bill calls it)."""

    cluster: str
    node: str
    resource_id: str
    provider: str
    machine: MachineType
    pool: str
    start: int
    end: int | None = None
    listed: bool = True
    """False for the one instance that nobody entered in the inventory."""


@dataclass(frozen=True)
class Outage:
    """An entry of `sacctmgr show event`: a node that was down, or drained of new work."""

    cluster: str
    node: str
    start: int
    end: int | None
    state: str
    reason: str


@dataclass(frozen=True)
class Reservation:
    """Nodes that a scheduler keeps for some accounts or users."""

    cluster: str
    name: str
    nodes: tuple[str, ...]
    start: int
    end: int
    accounts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()

    @property
    def is_maintenance(self) -> bool:
        return self.users == ("root",)


@dataclass(frozen=True)
class Fleet:
    stays: list[Stay]
    outages: list[Outage]
    reservations: list[Reservation]


def build_fleet(seed: int) -> Fleet:
    stays = [*_alps(), *_cirrus(seed), *_nimbus(seed)]
    return Fleet(stays, _outages(seed), RESERVATIONS)


def _alps() -> list[Stay]:
    """Owned hardware: three racks of eight and a bit. Nodes are retired, added and moved between pools."""
    stays = []
    names = [f"alps-r{rack}n{slot:02}" for rack in (1, 2, 3) for slot in range(1, 9)]
    names += ["alps-r4n01", "alps-r4n02"]
    for number, node in enumerate(names):
        pool = "alps-a100-interactive" if node.startswith("alps-r4") else "alps-a100"
        history = {
            "alps-r1n08": [(pool, _LONG_AGO, at("2026-01-27T14:00"))],
            "alps-r3n08": [
                ("alps-a100", _LONG_AGO, at("2026-01-12T09:00")),
                ("alps-a100-interactive", at("2026-01-12T09:00"), at("2026-01-30T17:20")),
                ("alps-a100", at("2026-01-30T17:20"), None),
            ],
        }.get(node, [(pool, _LONG_AGO, None)])
        stays += [
            Stay("alps", node, f"asset-{4001 + number}", OWNED, MACHINES["dgx-a100"], where, start, end)
            for where, start, end in history
        ]
    for number in range(1, 7):
        start = at("2026-01-20T08:00") if number == 6 else _LONG_AGO
        asset, kind = f"asset-{5000 + number}", MACHINES["cpu-epyc-128"]
        stays.append(Stay("alps", f"alps-c{number:02}", asset, OWNED, kind, "alps-cpu", start))
    return stays


def _cirrus(seed: int) -> list[Stay]:
    """Rented H100 nodes. Slurm's node names are fixed; the instances behind them come and go."""
    rng, kind = dice(seed, "cirrus fleet"), MACHINES["h100-8"]
    serial = iter(range(1, 10_000))

    def stay(node: str, pool: str, start: int, end: int | None, listed: bool = True) -> Stay:
        resource = f"i-{next(serial):04d}{rng.integers(16**8):08x}"
        return Stay("cirrus", node, resource, CLOUD, kind, f"cirrus-h100-{pool}", start, end, listed)

    stays = []
    for number in range(1, 15):
        node = f"cir-r{number:02}"
        if number == 3:  # the instance died and was replaced: same node name, new resource
            swapped = at("2026-01-18T11:24") + 37
            stays.append(stay(node, "reserved", _LONG_AGO, swapped))
            stays.append(stay(node, "reserved", swapped + 41 * MINUTE, None))
        else:
            start = at("2026-01-13T10:00") if number == 14 else _LONG_AGO
            stays.append(stay(node, "reserved", start, None))

    deadline = range(at("2026-01-19"), at("2026-01-31"), DAY)
    for day in range(PERIOD_START - 3 * DAY, LAST, DAY):
        weekday = (day // DAY + 3) % 7 < 5
        wanted = 8 if day in deadline and weekday else 4 if day in deadline else 2 if weekday else 0
        for number in range(1, wanted + 1):
            start = day + 6 * HOUR + int(rng.integers(3 * HOUR))
            end = start + 13 * HOUR + int(rng.integers(8 * HOUR))  # the last ones live past midnight
            stays.append(stay(f"cir-od-{number:02}", "on-demand", start, min(end, day + 29 * HOUR)))

    for number in range(1, 8):
        for start, end in _comings_and_goings(rng, up_hours=34, away_hours=7):
            stays.append(stay(f"cir-spot-{number:02}", "spot", start, end))
    start = at("2026-01-17T09:12")
    stays.append(stay("cir-spot-99", "spot", start, start + 7 * HOUR + 19 * MINUTE, listed=False))
    return stays


def _nimbus(seed: int) -> list[Stay]:
    """The Kubernetes cluster. Its spot nodes get a new name each time."""
    rng = dice(seed, "nimbus fleet")
    serial = iter(range(1, 10_000))

    def stay(node: str, machine: str, pool: str, start: int, end: int | None = None) -> Stay:
        resource = f"vm-{next(serial):04d}-{rng.integers(16**6):06x}"
        return Stay("nimbus", node, resource, CLOUD, MACHINES[machine], f"nimbus-{pool}", start, end)

    stays = [stay(f"nim-l4-{number:02}", "l4-8", "l4-reserved", _LONG_AGO) for number in range(1, 7)]
    stays += [stay(f"nim-a100-{number:02}", "a100-8", "a100", _LONG_AGO) for number in (1, 2)]
    for _ in range(5):
        for start, end in _comings_and_goings(rng, up_hours=26, away_hours=6):
            stays.append(stay(f"nim-spot-{rng.integers(16**5):05x}", "l4-8", "l4-spot", start, end))
    return stays


def _comings_and_goings(rng, up_hours: int, away_hours: int) -> list[tuple[int, int | None]]:
    """When a spot slot had an instance: the market gives and takes."""
    spans, now = [], PERIOD_START - 4 * DAY + int(rng.integers(DAY))
    while now < LAST:
        end = now + 40 * MINUTE + int(rng.exponential(up_hours) * HOUR)
        spans.append((now, end if end < LAST + 6 * HOUR else None))
        now = end + 5 * MINUTE + int(rng.exponential(away_hours) * HOUR)
    return spans


def _outages(seed: int) -> list[Outage]:
    rng = dice(seed, "outages")
    pump = at("2026-01-21T06:30"), at("2026-01-22T17:05")
    outages = [Outage("alps", f"alps-r2n{n:02}", *pump, "DRAIN", "cooling pump rack 2") for n in range(1, 9)]
    reasons = ("Not responding", "GPU ECC error xid 79", "nvlink flap", "Kill task failed", "power supply")
    candidates = [("alps", f"alps-r{rack}n{slot:02}") for rack in (1, 3) for slot in range(1, 8)]
    candidates += [("cirrus", f"cir-r{number:02}") for number in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)]
    candidates += [("alps", "alps-c02")]
    free_from = dict.fromkeys(candidates, 0)
    for _ in range(22):
        cluster, node = candidates[rng.integers(len(candidates))]
        start = PERIOD_START + int(rng.integers(MAX_DAYS * DAY - 2 * DAY))
        end = start + 20 * MINUTE + int(rng.exponential(4) * HOUR)
        reason = reasons[rng.integers(len(reasons))]
        if start < free_from[cluster, node]:
            continue  # a node breaks once at a time
        free_from[cluster, node] = end + DAY
        if reason in ("nvlink flap", "Kill task failed"):
            outages.append(Outage(cluster, node, start, end, "DRAIN", reason))
        else:
            outages.append(Outage(cluster, node, start, end, "DOWN", reason))
    outages += [
        Outage("alps", "alps-r1n05", at("2026-01-10T12:00"), at("2026-01-10T12:00"), "DOWN", "Not responding"),
        Outage("alps", "alps-r3n04", at("2026-02-03T15:40"), None, "DRAIN", "DIMM errors, waiting for parts"),
        Outage("cirrus", "cir-r03", at("2026-01-18T11:24") + 37, at("2026-01-18T12:30"), "DOWN", "Not responding"),
    ]
    return sorted(outages, key=lambda o: (o.cluster, o.node, o.start))


def _rack(rack: int, first: int, last: int) -> tuple[str, ...]:
    return tuple(f"alps-r{rack}n{slot:02}" for slot in range(first, last + 1))


RESERVATIONS = [
    Reservation(
        "alps",
        "vision-camera-ready",
        (*_rack(1, 1, 2), *_rack(3, 1, 2)),
        at("2026-01-08T08:00"),
        at("2026-01-12T08:00"),
        ("vision",),
    ),
    Reservation("alps", "maint-rack2", _rack(2, 1, 8), at("2026-01-21T06:30"), at("2026-01-22T17:00"), users=("root",)),
    Reservation(
        "alps",
        "speech-tutorial",
        ("alps-r4n02",),
        at("2026-01-20T12:00"),
        at("2026-01-20T18:00"),
        users=("clara",),
    ),
    Reservation(
        "cirrus",
        "nlp-deadline",
        tuple(f"cir-r{n:02}" for n in range(4, 10)),
        at("2026-01-24T00:00"),
        at("2026-01-29T12:00"),
        ("nlp", "nlp-pretrain"),
    ),
    Reservation("cirrus", "partner-demo", ("cir-r13",), at("2026-02-02T08:00"), at("2026-02-02T16:00"), ("guest",)),
]
