"""ALLOCATION §2: capacity, use and idle by cause, per node-hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from itertools import chain

from .charges import RESOURCES, Placement, placements
from .exact import (
    DAY,
    FOREVER,
    Interval,
    Row,
    first_payer,
    hour_interval,
    hours_touched,
    mapping,
    overlap,
    round_half_away,
    since_midnight,
    split,
    united,
    valid_on,
    without,
)

CAUSES = ("down", "reserved", "stranded", "unscheduled")
GPU_UNITS = 25_200
Payer = tuple[str, str | None, str | None, str | None]
"""Team, project, user, job."""


@dataclass(frozen=True)
class Part:
    """A job's part (a Slurm record or a pod) as the day sees it."""

    job_key: str
    part_id: str
    cluster_id: str
    partition: str | None
    interval: Interval
    suspended: int
    node_names: tuple[str, ...]
    amount: dict[str, int]
    bytes_out: int


def _per_resource() -> dict[str, int]:
    return dict.fromkeys(RESOURCES, 0)


def _held() -> dict[str, dict[str, int]]:
    return {resource: defaultdict(int) for resource in RESOURCES}


@dataclass
class NodeHour:
    """A node in a pool during an hour; amounts are resource times milliseconds."""

    inventory: dict[str, int] = field(default_factory=_per_resource)
    outside: dict[str, int] = field(default_factory=_per_resource)
    """Use while the inventory does not know the node: capacity there is that use."""
    down: dict[str, int] = field(default_factory=_per_resource)
    reserved: dict[str, int] = field(default_factory=_per_resource)
    reserved_by: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(_per_resource))
    """The same per team, each with the time of its own reservations."""
    gpu_model: str | None = None
    """That of the node's first stay here; the pool's where the stay names none or the inventory lacks the node."""
    parts: set[tuple[str, str]] = field(default_factory=set)
    """Job key and part id of whoever was here."""
    held: dict[str, dict[str, int]] = field(default_factory=_held)
    device_time: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Per job: GPUs, or slices of them, times milliseconds."""
    idle: dict[str, dict[str, int]] = field(default_factory=dict)

    def capacity(self, resource: str) -> int:
        """Overcommitted nodes count with what was held."""
        return max(self.inventory[resource] + self.outside[resource], self.used(resource))

    def used(self, resource: str) -> int:
        return sum(self.held[resource].values())


@dataclass
class Usage:
    node_hours: dict[tuple[str, str, str, int], NodeHour]
    """By cluster, node, pool and hour."""
    parts: list[Part]
    payers: dict[str, Payer]
    """By job key."""
    present: dict[tuple[str, int, str], list[Interval]]
    """When a job was in a pool during an hour, by pool, hour and job key; nodes may overlap."""
    placements: dict[tuple[str, str], list[Placement]]
    """By cluster and node, earliest first."""


# --- jobs --------------------------------------------------------------------------------------------------


def names(text: str | None) -> tuple[str, ...]:
    """A comma-separated list of the landing tables."""
    return tuple(sorted({name.strip() for name in (text or "").split(",") if name.strip()}))


def open_interval(row: Row, starts: str, ends: str, day: date) -> Interval:
    """[start, end) of a record that may still be open: it ends at its delivery's as-of time."""
    start = since_midnight(row[starts], day)
    ended = row[ends] if row[ends] is not None else row["as_of_at"]
    return start, max(start, since_midnight(ended, day))


def job_parts(jobs: Iterable[Row], day: date) -> list[Part]:
    parts = []
    for job in jobs:
        amount = {
            "gpu": job["gpu_units"] or 0,
            "cpu": _requested_or_measured(job, "cpu_millicores"),
            "memory": _requested_or_measured(job, "memory_mib"),
        }
        parts.append(
            Part(
                job["job_key"],
                job["part_id"],
                job["cluster_id"],
                job["partition"],
                open_interval(job, "start_at", "end_at", day),
                job["suspended_ms"] or 0,
                names(job["node_names"]) or ("",),
                amount,
                job["bytes_out"] or 0,
            )
        )
    return parts


def _requested_or_measured(job: Row, column: str) -> int:
    requested = job[column]
    return requested if requested is not None else job[f"measured_{column}"] or 0


def first_parts(jobs: Iterable[Row]) -> dict[str, Row]:
    """The part that speaks for each job: the one that started first, of several the lowest part id."""
    first: dict[str, Row] = {}
    for job in sorted(jobs, key=lambda job: (job["start_at"], job["part_id"])):
        first.setdefault(job["job_key"], job)
    return first


def job_payers(jobs: Iterable[Row], rules: list[Row]) -> dict[str, Payer]:
    """One payer per job: the one of its first part."""
    payers: dict[str, Payer] = {}
    for job_key, job in first_parts(jobs).items():
        subject = {name: job[name] for name in ("cluster_id", "account", "user_name", "namespace")}
        found = first_payer(rules, {**subject, "label": mapping(job["labels"])})
        team, project = found or ("unattributed", None)
        payers[job_key] = team, project, job["user_name"], job_key
    return payers


def amounts_per_node(part: Part, known: dict[tuple[str, str], list[Placement]]) -> dict[str, dict[str, int]]:
    """What the part holds on each of its nodes: by the nodes' size, evenly if one of them is unknown."""
    sizes = [known.get((part.cluster_id, node)) for node in part.node_names]
    per_node: dict[str, dict[str, int]] = {node: {} for node in part.node_names}
    for resource, amount in part.amount.items():
        weights = [rows[0].amount[resource] if rows else 0 for rows in sizes]
        if not all(sizes) or sum(weights) == 0:
            weights = [1] * len(sizes)
        for node, piece in zip(part.node_names, split(amount, weights), strict=True):
            per_node[node][resource] = piece
    return per_node


def hold(node_hour: NodeHour, part: Part, amounts: dict[str, int], milliseconds: int) -> dict[str, int]:
    """Book a piece of a part's time; cores are given back while it is suspended, GPUs and memory are not."""
    life = part.interval[1] - part.interval[0]
    running = milliseconds
    if 0 < part.suspended <= life:
        running = round_half_away(milliseconds * (life - part.suspended), life)
    held = {resource: amount * (running if resource == "cpu" else milliseconds) for resource, amount in amounts.items()}
    for resource, quantity in held.items():
        node_hour.held[resource][part.job_key] += quantity
    # A slice of a GPU is sampled as one device, like a whole one.
    node_hour.device_time[part.job_key] += -(-amounts["gpu"] // GPU_UNITS) * milliseconds
    return held


# --- reservations ------------------------------------------------------------------------------------------


def team_reservations(
    reservations: Iterable[Row], rules: list[Row], day: date
) -> dict[tuple[str, str], dict[str, list[Interval]]]:
    """Per node and team the united time under reservations that name one of its accounts or users."""
    found: dict[tuple[str, str], dict[str, list[Interval]]] = defaultdict(lambda: defaultdict(list))
    for row in reservations:
        cluster = {"cluster_id": row["cluster_id"], "namespace": None, "label": {}}
        subjects = [{**cluster, "account": name, "user_name": None} for name in names(row["accounts"])]
        subjects += [{**cluster, "account": None, "user_name": name} for name in names(row["users"])]
        payers = [first_payer(rules, subject) for subject in subjects]
        end = FOREVER if row["end_at"] is None else since_midnight(row["end_at"], day)
        for team in {payer[0] for payer in payers if payer}:
            for node in names(row["node_names"]):
                found[row["cluster_id"], node][team].append((since_midnight(row["start_at"], day), end))
    return {node: {team: united(times) for team, times in teams.items()} for node, teams in found.items()}


# --- the day -----------------------------------------------------------------------------------------------


def usage_of_day(tables: dict[str, list[Row]], seeds: dict[str, list[Row]], day: date) -> Usage:
    rules = valid_on(seeds["payer_rules"], day)
    pools = {row["pool_id"]: row for row in valid_on(seeds["pools"], day)}
    known: dict[tuple[str, str], list[Placement]] = defaultdict(list)
    for placement in placements(tables["node_inventory"], day):
        known[placement.cluster_id, placement.node_name].append(placement)
    known = dict(known)

    node_hours: dict[tuple[str, str, str, int], NodeHour] = defaultdict(NodeHour)
    _add_capacity(node_hours, known, tables, rules, day)
    parts = job_parts(tables["jobs"], day)
    present: dict[tuple[str, int, str], list[Interval]] = defaultdict(list)
    for part in parts:
        _add_use(node_hours, present, known, part, pool_of_partition(part, pools))
    for (_, _, pool_id, _), node_hour in node_hours.items():
        pool = pools.get(pool_id, {})
        node_hour.gpu_model = node_hour.gpu_model or pool.get("gpu_model")
        node_hour.idle = idle_by_cause(node_hour, pool)
    return Usage(node_hours, parts, job_payers(tables["jobs"], rules), present, known)


def _add_capacity(
    node_hours: dict[tuple[str, str, str, int], NodeHour],
    known: dict[tuple[str, str], list[Placement]],
    tables: dict[str, list[Row]],
    rules: list[Row],
    day: date,
) -> None:
    events: dict[tuple[str, str], list[Interval]] = defaultdict(list)
    for row in tables["node_events"]:
        events[row["cluster_id"], row["node_name"]].append(open_interval(row, "start_at", "end_at", day))
    down = {node: united(intervals) for node, intervals in events.items()}
    reserved = team_reservations(tables["reservations"], rules, day)

    for node, rows in known.items():
        for placement in rows:
            for hour in hours_touched(placement.interval):
                slot = hour_interval(hour)
                here = max(slot[0], placement.interval[0]), min(slot[1], placement.interval[1])
                node_hour = node_hours[*node, placement.pool_id, hour]
                node_hour.gpu_model = node_hour.gpu_model or placement.gpu_model
                teams = reserved.get(node, {})
                down_time = time_in(here, down.get(node, ()))
                reserved_time = time_in(here, united(chain.from_iterable(teams.values())))
                own_time = {team: time_in(here, intervals) for team, intervals in teams.items()}
                for resource, amount in placement.amount.items():
                    node_hour.inventory[resource] += amount * (here[1] - here[0])
                    node_hour.down[resource] += amount * down_time
                    node_hour.reserved[resource] += amount * reserved_time
                    for team, milliseconds in own_time.items():
                        node_hour.reserved_by[team][resource] += amount * milliseconds


def time_in(here: Interval, intervals: Iterable[Interval]) -> int:
    """How much of `here` the disjoint intervals cover."""
    return sum(overlap(here, interval) for interval in intervals)


def pool_of_partition(part: Part, pools: dict[str, Row]) -> str:
    """Where the time goes that a part spends on a node the inventory does not know."""
    candidates = [
        pool_id
        for pool_id, pool in pools.items()
        if pool["pool_kind"] == "compute"
        and pool["cluster_id"] == part.cluster_id
        and part.partition is not None
        and pool["partition"] == part.partition
    ]
    return min(candidates, default="unmapped")


def _add_use(
    node_hours: dict[tuple[str, str, str, int], NodeHour],
    present: dict[tuple[str, int, str], list[Interval]],
    known: dict[tuple[str, str], list[Placement]],
    part: Part,
    fallback_pool: str,
) -> None:
    for node, amounts in amounts_per_node(part, known).items():
        stays = known.get((part.cluster_id, node), ())
        for hour in hours_touched(part.interval):
            slot = hour_interval(hour)
            here = max(slot[0], part.interval[0]), min(slot[1], part.interval[1])
            for stay in stays:
                inside = max(here[0], stay.interval[0]), min(here[1], stay.interval[1])
                if inside[0] < inside[1]:
                    node_hour = node_hours[part.cluster_id, node, stay.pool_id, hour]
                    node_hour.parts.add((part.job_key, part.part_id))
                    present[stay.pool_id, hour, part.job_key].append(inside)
                    hold(node_hour, part, amounts, inside[1] - inside[0])
            outside = without(here, (stay.interval for stay in stays))
            if outside:
                node_hour = node_hours[part.cluster_id, node, fallback_pool, hour]
                node_hour.parts.add((part.job_key, part.part_id))
                present[fallback_pool, hour, part.job_key].extend(outside)
                held = hold(node_hour, part, amounts, sum(end - start for start, end in outside))
                for resource, quantity in held.items():
                    node_hour.outside[resource] += quantity


def idle_by_cause(node_hour: NodeHour, pool: Row) -> dict[str, dict[str, int]]:
    """Capacity without what was held, to the causes in their order, each taking at most what is left."""
    left = {resource: node_hour.capacity(resource) - node_hour.used(resource) for resource in RESOURCES}
    idle = {resource: dict.fromkeys(CAUSES, 0) for resource in RESOURCES}
    for cause, wanted in (("down", node_hour.down), ("reserved", node_hour.reserved)):
        for resource in RESOURCES:
            idle[resource][cause] = min(left[resource], wanted[resource])
            left[resource] -= idle[resource][cause]

    by_cores = left["cpu"] * GPU_UNITS // (1000 * (pool.get("min_cores_per_gpu") or 1))
    by_memory = left["memory"] * GPU_UNITS // (1024 * (pool.get("min_gib_per_gpu") or 1))
    idle["gpu"]["stranded"] = left["gpu"] - min(left["gpu"], by_cores, by_memory)
    left["gpu"] -= idle["gpu"]["stranded"]
    for resource in RESOURCES:
        idle[resource]["unscheduled"] = left[resource]
    return idle


def time_on_day(interval: Interval) -> int:
    return overlap(interval, (0, DAY))
