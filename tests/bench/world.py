"""Companies of any size, the same for the same parameters: a cluster, its jobs, its telemetry, its bill and its policy.

Nodes of eight GPUs are cut into slots of one, two, four or eight GPUs, or four nodes make one slot. In each slot one
job follows another without overlap, so that a job's place at any second is known and telemetry can be painted by whole
matrices. The bill has a line per node and hour; the rest are lines of buckets with a team's tag and of a network that
belongs to nobody.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import cycle
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from orchestration.workspace import PROJECT_ROOT, Workspace

GPUS_PER_NODE = 8
CORES, MEMORY_GIB = 192, 2048
SLOT_SIZES = (1, 2, 4, 8, 32)
"""GPUs of a slot, by the kind of its node; the last one spans four nodes."""
POOLS = 4
DAY = 86_400
FIRST_DAY = date(2026, 1, 1)
KEPT_FROM = "2025-01-01"
SEEDS = PROJECT_ROOT / "seeds"


@dataclass(frozen=True)
class World:
    gpus: int = 2_000
    days: int = 7
    interval: int = 30
    """Seconds between two samples of a GPU."""
    jobs: int = 200_000
    lines: int = 300_000
    teams: int = 50
    seed: int = 1

    @property
    def name(self) -> str:
        return f"{self.gpus}gpus-{self.days}d-{self.interval}s-{self.jobs}jobs-{self.lines}lines-{self.teams}teams"

    @property
    def samples(self) -> int:
        return self.gpus * self.days * DAY // self.interval

    @property
    def nodes(self) -> int:
        return self.gpus // GPUS_PER_NODE

    @property
    def start(self) -> int:
        return int(datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC).timestamp())

    @property
    def dates(self) -> list[date]:
        return [FIRST_DAY + timedelta(days=number) for number in range(self.days)]

    @cached_property
    def slots(self) -> list[_Slot]:
        return list(_slots(self.nodes))

    @cached_property
    def placed(self) -> _Placed:
        return _place(self)


STANDARD = World()
LARGE = World(days=28, jobs=800_000, lines=1_200_000)


@dataclass(frozen=True)
class _Slot:
    nodes: tuple[int, ...]
    first_gpu: int
    gpus: int
    """On each of its nodes."""


@dataclass(frozen=True)
class _Placed:
    """All jobs; those of one slot beside each other, by time."""

    slot: np.ndarray
    start: np.ndarray
    end: np.ndarray
    first_of_slot: np.ndarray


def write_world(world: World, folder: Path) -> Workspace:
    """The inbox, the policy and the sources of a world, unless they are there."""
    done = folder / "complete"
    if not done.exists():
        for write in (_write_sources, _write_policy, _write_inventory, _write_jobs, _write_bill, _write_telemetry):
            write(world, folder)
        done.touch()
    return workspace_of(folder)


def write_empty_world(world: World, folder: Path) -> Workspace:
    """The same company on days of which nothing has been delivered."""
    _write_sources(world, folder, optional=True)
    _write_policy(world, folder)
    return workspace_of(folder)


def workspace_of(folder: Path) -> Workspace:
    return Workspace.locate(sources=folder / "sources.yml", seeds=folder / "seeds", data=folder / "data")


def _slots(nodes: int) -> Iterator[_Slot]:
    node = 0
    for size in cycle(SLOT_SIZES):
        if node >= nodes:
            return
        if size <= GPUS_PER_NODE:
            yield from (_Slot((node,), first, size) for first in range(0, GPUS_PER_NODE, size))
            node += 1
        else:
            together = min(size // GPUS_PER_NODE, nodes - node)
            yield _Slot(tuple(range(node, node + together)), 0, GPUS_PER_NODE)
            node += together


def _place(world: World) -> _Placed:
    """Every slot has the same number of jobs; their lengths differ by two orders of magnitude, and one in ten waits."""
    rng = np.random.default_rng([world.seed, 1])
    per_slot = max(1, round(world.jobs / len(world.slots)))
    shape = (len(world.slots), per_slot)
    lengths = rng.lognormal(0, 1, shape)
    pauses = np.where(rng.random(shape) < 0.1, rng.lognormal(0, 1, shape), 0)
    ends = np.cumsum(lengths + pauses, axis=1)
    scale = world.days * DAY / ends[:, -1:]
    end = world.start + np.floor(ends * scale).astype(np.int64)
    start = world.start + np.floor((ends - lengths) * scale).astype(np.int64)
    slot = np.repeat(np.arange(len(world.slots)), per_slot)
    return _Placed(slot, start.ravel(), end.ravel(), np.arange(len(world.slots)) * per_slot)


def node_name(node: int) -> str:
    return f"n{node:05}"


def _write_sources(world: World, folder: Path, *, optional: bool = False) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    common = ", optional: true" if optional else ""
    (folder / "sources.yml").write_text(
        f"""\
sources:
  - {{name: cloud, area: billing, kind: focus, path: inbox/bill_*.csv{common}}}
  - {{name: titan, area: scheduler, kind: slurm, cluster: titan, jobs: inbox/sacct_*.psv{common}}}
  - {{name: titan_gpus, area: telemetry, kind: files, cluster: titan, path: inbox/dcgm_*.parquet,
     interval_seconds: {world.interval}{common}}}
  - {{name: nodes, area: inventory, kind: node_inventory, path: inbox/nodes.csv{common}}}
"""
    )
    (folder / "inbox").mkdir(exist_ok=True)


# ── policy ───────────────────────────────────────────────────────────────────────────────────────────
def _write_policy(world: World, folder: Path) -> None:
    """The project's seeds with other rows; files that are not named here have none."""
    teams = [f"team{number:04}" for number in range(world.teams)]
    rows: dict[str, list[dict[str, object]]] = {
        "teams": [{"team_id": team, "team_name": team, "cost_centre": f"CC-{team}", "headcount": 5} for team in teams],
        "projects": [
            {"project_id": f"{team}-{kind}", "project_name": f"{team} {kind}", "team_id": team}
            for team in teams
            for kind in ("a", "b")
        ],
        "payer_rules": [
            {"rule_order": 10 * number, "account": team, "team_id": team} for number, team in enumerate(teams, 1)
        ]
        + [
            {"rule_order": 10 * number, "tag": f"team={team}", "team_id": team}
            for number, team in enumerate(teams, len(teams) + 1)
        ],
        "pools": [
            {
                "pool_id": f"gpus{pool}",
                "pool_name": f"GPUs {pool}",
                "pool_kind": "compute",
                "cluster_id": "titan",
                "partition": f"p{pool}",
                "gpu_model": "h100",
                "purchase_class": "reserved",
                "default_instance_type": "h100-8",
                "min_cores_per_gpu": 8,
                "min_gib_per_gpu": 64,
            }
            for pool in range(POOLS)
        ]
        + [
            {"pool_id": "buckets", "pool_name": "Buckets", "pool_kind": "storage"},
            {"pool_id": "network", "pool_name": "Network", "pool_kind": "overhead"},
        ],
        "cost_rules": [
            {"rule_order": 1, "service_name": "Virtual Machines", "component": "node", "pool_id": "gpus0"},
            {"rule_order": 2, "service_name": "Object Storage", "component": "storage", "pool_id": "buckets"}
            | {"has_owner": "true"},
            {"rule_order": 3, "service_name": "Data Transfer", "component": "network", "pool_id": "network"},
        ],
        "allocation_policies": [
            {"pool_id": "*", "component": "*", "method": "direct", "overhead_base": "direct_cost"},
        ],
        "idle_policies": [
            {"pool_id": "*", "idle_cause": "*", "policy": "proportional", "idle_window": "day"},
        ],
        "billing_modes": [{"team_id": "*", "billing_mode": "chargeback"}],
        "journal_accounts": [
            {"component": "*", "expense_account": "6500", "clearing_account": "1990", "clearing_cost_centre": "CC-0"}
        ],
    }
    for seed in sorted(SEEDS.glob("policy/*.csv")):
        with seed.open() as given:
            header = next(csv.reader(given))
        common = {"valid_from": KEPT_FROM, "reason": "A large company"}
        _write_seed(folder, f"policy/{seed.name}", header, [common | row for row in rows.get(seed.stem, [])])
    for seed in sorted(SEEDS.glob("reference/*.csv")):
        with seed.open() as given:
            header, *kept = csv.reader(given)
        _write_seed(folder, f"reference/{seed.name}", header, [dict(zip(header, row, strict=True)) for row in kept])


def _write_seed(folder: Path, name: str, header: list[str], rows: list[dict[str, object]]) -> None:
    target = folder / "seeds" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="") as file:
        writer = csv.DictWriter(file, header, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({"has_owner": "false"} | row if "has_owner" in header else row for row in rows)


# ── what was delivered ───────────────────────────────────────────────────────────────────────────────
def _write_inventory(world: World, folder: Path) -> None:
    named = ("cluster", "node", "resource_id", "provider", "instance_type", "pool")
    header = (*named, "gpu_model", "gpus", "cores", "memory_gib", "from", "to")
    with (folder / "inbox" / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for node in range(world.nodes):
            name = node_name(node)
            size = ("h100", GPUS_PER_NODE, CORES, MEMORY_GIB)
            stay = (f"{KEPT_FROM}T00:00:00Z", "")
            writer.writerow(("titan", name, f"vm-{name}", "Nimbus", "h100-8", f"gpus{node % POOLS}", *size, *stay))


def _write_jobs(world: World, folder: Path) -> None:
    """One dump of sacct per UTC day with every job that ran on it, in epoch seconds."""
    placed, slots = world.placed, world.slots
    first = np.array([slot.nodes[0] for slot in slots])
    count = np.array([len(slot.nodes) for slot in slots])
    gpus = np.array([slot.gpus * len(slot.nodes) for slot in slots])
    jobs = pa.table(
        {
            "number": np.arange(1, len(placed.start) + 1),
            "first_node": first[placed.slot],
            "nodes": count[placed.slot],
            "gpus": gpus[placed.slot],
            "start": placed.start,
            "end": placed.end,
        }
    )
    with duckdb.connect() as con:
        con.register("jobs", jobs)
        for number, day in enumerate(world.dates):
            since, until = world.start + number * DAY, world.start + (number + 1) * DAY
            taken = until + 900
            ended = f'"end" <= {taken}'
            path = folder / "inbox" / f"sacct_{day}_{_stamp(taken)}.psv"
            con.execute(
                f"""
                copy (
                    select number as "JobIDRaw", number as "JobID", 'train-' || number % 97 as "JobName",
                        'user' || lpad((hash(number) % {world.teams * 5})::varchar, 5, '0') as "User",
                        'team' || lpad((hash(number) % {world.teams})::varchar, 4, '0') as "Account",
                        'p' || first_node % {POOLS} as "Partition", 'normal' as "QOS",
                        case when {ended} then 'COMPLETED' else 'RUNNING' end as "State",
                        start - 60 as "Submit", start as "Start",
                        case when {ended} then "end"::varchar else 'Unknown' end as "End",
                        least("end", {taken}) - start as "ElapsedRaw",
                        'billing=' || gpus || ',cpu=' || gpus * 16 || ',gres/gpu:h100=' || gpus || ',gres/gpu=' || gpus
                            || ',mem=' || gpus * 128 || 'G,node=' || nodes as "AllocTRES",
                        case when nodes = 1 then printf('n%05d', first_node)
                            else printf('n[%05d-%05d]', first_node, first_node + nodes - 1) end as "NodeList"
                    from jobs where start < {until} and "end" > {since} order by number
                ) to '{path}' (format csv, delimiter '|', header)
                """
            )
            os.utime(path, (taken, taken))


def _write_bill(world: World, folder: Path) -> None:
    hours = world.days * 24
    others = max(0, world.lines - world.nodes * hours)
    begin, finish = (
        f"strftime(make_timestamp(cast({value} * 1000000 as bigint)), '%Y-%m-%dT%H:%M:%SZ')"
        for value in ("started", "(started + 3600)")
    )
    path = folder / "inbox" / f"bill_2026-01_{_stamp(world.start + 40 * DAY)}.csv"
    common = f"""
        'a1' as "BillingAccountId", 'USD' as "BillingCurrency", '2026-02-01T00:00:00Z' as "BillingPeriodEnd",
        '2026-01-01T00:00:00Z' as "BillingPeriodStart", 'Usage' as "ChargeCategory", 'Usage-Based' as "ChargeFrequency",
        {begin} as "ChargePeriodStart", {finish} as "ChargePeriodEnd", 'Nimbus' as "ProviderName"
    """
    with duckdb.connect() as con:
        con.execute("set TimeZone = 'UTC'")
        con.execute(
            f"""
            copy (
                select *, "BilledCost" as "EffectiveCost", "BilledCost" as "ListCost" from (
                    select 98.320000000 + (node % 7) * 0.001234567 as "BilledCost", {common},
                        printf('vm-n%05d', node) as "ResourceId", 'Virtual Machines' as "ServiceName",
                        'Compute' as "ServiceCategory", 'h100-8' as "SkuId", '{{}}' as "Tags"
                    from (select n.range as node, {world.start} + h.range * 3600 as started
                        from range({world.nodes}) as n, range({hours}) as h)
                    union all
                    select (1 + hash(line) % 999983) * 0.000001 as "BilledCost", {common},
                        'res-' || hash(line) % 5000 as "ResourceId",
                        case when line % 4 = 0 then 'Data Transfer' else 'Object Storage' end as "ServiceName",
                        'Storage' as "ServiceCategory", 'sku' || line % 40 as "SkuId",
                        case when line % 4 = 0 then '{{}}' else
                            printf('{{"team": "team%04d"}}', (hash(line) % {world.teams})::int) end as "Tags"
                    from (select range as line, {world.start} + (hash(range) % {hours}) * 3600 as started
                        from range({others}))
                )
            ) to '{path}' (format csv, header)
            """
        )
    delivered = world.start + 40 * DAY
    os.utime(path, (delivered, delivered))


def _write_telemetry(world: World, folder: Path) -> None:
    """One Parquet file per UTC day with dcgm-exporter's names, GPU by GPU."""
    owner = [(node, gpu) for slot in world.slots for node in slot.nodes for gpu in _gpus_of(slot)]
    names = pa.array([node_name(node) for node in range(world.nodes)])
    node, index = (np.array(values, np.int32) for values in zip(*owner, strict=True))
    slot_of = np.array([place for place, slot in enumerate(world.slots) for _ in slot.nodes for _ in _gpus_of(slot)])
    joules = np.zeros(len(owner), np.int64)
    for number, day in enumerate(world.dates):
        ticks = np.arange(world.start + number * DAY, world.start + (number + 1) * DAY, world.interval)
        path = folder / "inbox" / f"dcgm_{day}.parquet"
        writer = None
        for part in np.array_split(np.arange(len(owner)), max(1, len(owner) // 500)):
            table, joules[part] = _samples(world, number, part, ticks, node, index, slot_of, joules[part], names)
            writer = writer or pq.ParquetWriter(
                path,
                table.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in table.column_names if name not in _DELTA],
                column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
            )
            writer.write_table(table, row_group_size=131_072)
        if writer:
            writer.close()
        delivered = int(ticks[-1]) + 1_800
        os.utime(path, (delivered, delivered))


_DELTA = ("timestamp", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")


def _gpus_of(slot: _Slot) -> range:
    return range(slot.first_gpu, slot.first_gpu + slot.gpus)


def _samples(
    world: World,
    number: int,
    part: np.ndarray,
    ticks: np.ndarray,
    node: np.ndarray,
    index: np.ndarray,
    slot_of: np.ndarray,
    joules: np.ndarray,
    names: pa.Array,
) -> tuple[pa.Table, np.ndarray]:
    rng = np.random.default_rng([world.seed, 2, number, int(part[0])])
    placed = world.placed
    per_slot = len(placed.start) // len(world.slots)
    job = np.full((len(part), len(ticks)), -1, np.int64)
    for row, slot in enumerate(slot_of[part]):
        own = slice(slot * per_slot, (slot + 1) * per_slot)
        at = np.searchsorted(placed.start[own], ticks, side="right") - 1
        running = (at >= 0) & (ticks < placed.end[own][at])
        job[row] = np.where(running, at + slot * per_slot, -1)
    busy = job >= 0
    util = np.where(busy, 30 + job * 7_919 % 60 + rng.integers(-9, 10, job.shape), 0)
    tenths = 720 + util * 62
    energy = joules[:, None] + np.cumsum(tenths * (100 * world.interval), axis=1)
    flat = job.ravel()
    held, codes = np.unique(flat[flat >= 0], return_inverse=True)
    code = np.full(len(flat), 0, np.int32)
    code[flat >= 0] = codes
    size = len(ticks)
    table = pa.table(
        {
            "timestamp": pa.array(np.tile(ticks * 1000, len(part)), pa.timestamp("ms", tz="UTC")),
            "Hostname": pa.DictionaryArray.from_arrays(pa.array(np.repeat(node[part], size)), names),
            "gpu": pa.array(np.repeat(index[part], size).astype(np.int8)),
            "hpc_job": pa.DictionaryArray.from_arrays(
                pa.array(code, mask=flat < 0), pa.array([str(one + 1) for one in held], pa.string())
            ),
            "DCGM_FI_DEV_GPU_UTIL": pa.array(util.ravel()),
            "DCGM_FI_PROF_SM_ACTIVE": pa.array((util * 9 // 10 / 100).astype(np.float32).ravel()),
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": pa.array((util // 3 / 100).astype(np.float32).ravel()),
            "DCGM_FI_DEV_POWER_USAGE": pa.array((tenths / 10).astype(np.float32).ravel()),
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": pa.array(energy.ravel()),
            "DCGM_FI_DEV_FB_USED": pa.array(np.where(busy, 60_000, 3).ravel()),
        }
    )
    return table, energy[:, -1]


def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y%m%dT%H%M%SZ")
