"""GPU telemetry: DCGM fields of every GPU, every 60 seconds, one Parquet file per cluster and UTC day.

Twenty-four million samples in a few seconds: each day is a matrix of GPUs × minutes into which the jobs paint
who holds what and how busy it is; everything else is arithmetic on whole matrices.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .clock import DAY, HOUR, MINUTE, PERIOD_START, at, day_name, dice
from .company import (
    ALL_CLUSTERS,
    FULL_WATTS,
    GPU_MEMORY_MIB,
    IDLE_WATTS,
    MIG_GPUS,
    MIG_NODE,
    MIG_SLICES,
)
from .placement import Run, active, end_of
from .world import World, mix, parts

MINUTES = DAY // MINUTE
GPUS = 8
BLANK = 9_223_372_036_854_775_794
"""What DCGM reports when it has no value."""
NOBODY = 0
"""Code of an empty label."""
_FIRST_INSTANCE = 7
"""GPU_I_ID of the first of seven slices, as nvidia-smi numbers them."""

GAPS = {
    "alps": [("alps-r1n03", "2026-01-06T03:10", 310), ("alps-r3n02", "2026-01-16T11:00", 700)],
    "cirrus": [("cir-r05", "2026-01-02T20:00", 420), ("cir-r11", "2026-01-23T08:30", 95)],
    "nimbus": [("nim-l4-02", "2026-01-03T05:00", 200), ("nim-l4-05", "2026-01-25T22:00", 260)],
}
"""The exporter was away: node, from, minutes."""
RESETS = {
    "alps": [("alps-r1n02", "2026-01-05T09:47"), ("alps-r3n05", "2026-01-28T16:02")],
    "cirrus": [("cir-r07", "2026-01-03T13:21")],
    "nimbus": [("nim-a100-02", "2026-01-19T07:00")],
}
"""The driver was reloaded: energy counters start again at zero."""


@dataclass
class _Painted:
    """A day's GPUs × minutes: label code, job's busy level, and the run that holds it."""

    label: np.ndarray
    util: np.ndarray
    traits: np.ndarray
    """Index into the table of (sm, tensor, memory) of the runs; 0 is nobody."""
    trait_table: list[tuple[int, int, int]]
    labels: list[str]


def write_telemetry(inbox: Path, world: World) -> dict[str, int]:
    """Two clusters at a time: numpy and pyarrow release the interpreter while they compute."""
    with ThreadPoolExecutor(max_workers=2) as pool:
        counts = pool.map(lambda cluster: _write_cluster(inbox, world, cluster), ALL_CLUSTERS)
        return {"telemetry samples": sum(counts)}


def _write_cluster(inbox: Path, world: World, cluster: str) -> int:
    written = 0
    counters: dict[str, np.ndarray] = {}
    """Energy counter of each resource's GPUs at midnight, in mJ."""
    for day in world.days:
        table = _day_table(world, cluster, day, counters)
        path = inbox / "telemetry" / cluster / f"dcgm_{day_name(day)}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(
            table,
            path,
            compression="zstd",
            compression_level=1,
            row_group_size=131_072,
            use_dictionary=[name for name in table.column_names if name not in _DELTA],
            column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
            write_statistics=["timestamp", "Hostname", "gpu"],
            store_schema=True,
        )
        delivered = day + DAY + HOUR // 2
        os.utime(path, (delivered, delivered))
        written += table.num_rows
    return written


_DELTA = ("timestamp", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")


def _presence(world: World, cluster: str, day: int) -> tuple[list[str], dict[str, str], np.ndarray]:
    """Nodes with GPUs on that day, their models, and the minutes at which they answered."""
    stays = [
        stay
        for stay in world.fleet.stays
        if stay.cluster == cluster and stay.machine.gpus and stay.start < day + DAY and (stay.end or day + 1) > day
    ]
    nodes = sorted({stay.node for stay in stays})
    models = {stay.node: stay.machine.gpu_model for stay in stays}
    row = {node: i for i, node in enumerate(nodes)}
    present = np.zeros((len(nodes), MINUTES), dtype=bool)
    for stay in stays:
        present[row[stay.node], _minute(stay.start, day) : _minute(stay.end or day + DAY, day)] = True
    for outage in world.fleet.outages:
        if outage.cluster == cluster and outage.state == "DOWN" and outage.node in row and outage.end:
            present[row[outage.node], _minute(outage.start, day) : _minute(outage.end, day)] = False
    for node, start, minutes in GAPS[cluster]:
        if node in row:
            gap = slice(_minute(at(start), day), _minute(at(start) + minutes * MINUTE, day))
            present[row[node], gap] = False
    return nodes, models, present


def _minute(second: int, day: int) -> int:
    """The first sample at or after a time, within the day."""
    return min(MINUTES, max(0, -((day - second) // MINUTE)))


def _paint(world: World, cluster: str, day: int, row: dict[str, int], slots: int) -> _Painted:
    """Let the day's runs mark the GPUs that they hold. Rows: node × 8 + GPU, then MIG slices."""
    painted = _Painted(
        np.zeros((slots, MINUTES), dtype=np.int32),
        np.zeros((slots, MINUTES), dtype=np.int16),
        np.zeros((slots, MINUTES), dtype=np.int16),
        [(0, 0, 0)],
        [""],
    )
    for run in active(world.runs[cluster], day):
        if run.request.gpus == 0:
            continue
        activity = run.request.activity
        painted.trait_table.append((activity.sm_permille, activity.tensor_permille, activity.memory_percent))
        for part in parts(run):
            painted.labels.append(part.label if cluster != "nimbus" else f"{run.request.namespace}/{part.label}")
            for node, mask in zip(part.nodes, part.gpu_masks, strict=True):
                first = row[node] * GPUS if not node.endswith("/mig") else slots - MIG_SLICES
                for gpu in range(mask.bit_length()):
                    if mask >> gpu & 1:
                        _hold(painted, first + gpu, run, day)
    return painted


def _hold(painted: _Painted, gpu: int, run: Run, day: int) -> None:
    start, end = _minute(run.start, day), _minute(end_of(run, day + DAY), day)
    activity = run.request.activity
    painted.label[gpu, start:end] = len(painted.labels) - 1
    painted.traits[gpu, start:end] = len(painted.trait_table) - 1
    painted.util[gpu, start:end] = activity.util
    loaded = _minute(run.start + activity.warm_up_minutes * MINUTE, day)
    painted.util[gpu, start : min(loaded, end)] = 0
    # a dip at each checkpoint, counted from the start of the run, not of the day
    since = (day - run.start) // MINUTE
    dip = start + (-(since + start)) % activity.checkpoint_minutes
    painted.util[gpu, dip : end : activity.checkpoint_minutes] //= 5


def _day_table(world: World, cluster: str, day: int, counters: dict[str, np.ndarray]) -> pa.Table:
    nodes, models, present = _presence(world, cluster, day)
    row = {node: i for i, node in enumerate(nodes)}
    has_mig = cluster == "nimbus" and MIG_NODE in row
    slots = len(nodes) * GPUS + (MIG_SLICES if has_mig else 0)
    painted = _paint(world, cluster, day, row, slots)
    rng = dice(world.seed, "telemetry", cluster, day)

    owner = np.repeat(np.arange(len(nodes)), GPUS)
    index = np.tile(np.arange(GPUS, dtype=np.int8), len(nodes))
    instance = np.full(slots, -1, dtype=np.int8)
    mig_parent = np.zeros(slots, dtype=bool)
    if has_mig:
        owner = np.append(owner, np.full(MIG_SLICES, row[MIG_NODE]))
        index = np.append(index, np.full(MIG_SLICES, MIG_GPUS[0], dtype=np.int8))
        instance[-MIG_SLICES:] = np.arange(_FIRST_INSTANCE, _FIRST_INSTANCE + MIG_SLICES)
        mig_parent[row[MIG_NODE] * GPUS + MIG_GPUS[0]] = True
        # the physical GPU is as busy as its slices together
        painted.util[mig_parent] = painted.util[-MIG_SLICES:].sum(axis=0) // MIG_SLICES
    kept = present[owner]

    shape = painted.util.shape
    shiver = rng.integers(-9, 10, shape, dtype=np.int8)
    util = np.where(painted.util > 0, np.clip(painted.util + shiver, 0, 100), 0)
    sm, tensor, memory = np.array(painted.trait_table, dtype=np.int32).T
    sm_active = (util * sm[painted.traits]) // 100
    tensor_active = (sm_active * tensor[painted.traits]) // 1000
    model_row = np.array([list(IDLE_WATTS).index(models[node]) for node in nodes])[owner]
    idle, full = (np.array(list(watts.values()))[model_row] for watts in (IDLE_WATTS, FULL_WATTS))
    # tenths of a watt, so that the column has few distinct values
    tenths = idle[:, None] * 10 + util * ((full - idle) * 10)[:, None] // 100
    tenths = tenths + shiver * 3
    energy = _energy(world, cluster, day, nodes, owner, tenths, kept, counters)
    sizes = np.array(list(GPU_MEMORY_MIB.values()))[[list(GPU_MEMORY_MIB).index(models[n]) for n in nodes]][owner]
    used = 3 + memory[painted.traits] * sizes[:, None] // 100
    is_slice = instance >= 0
    used[is_slice] //= MIG_SLICES

    util = util.astype(np.int64)
    watts = (tenths / 10).astype(np.float32)
    util[mig_parent] = BLANK  # not supported while MIG is on
    util[is_slice] = 0  # constant zero: no data, not idleness
    watts[is_slice] = float(BLANK)  # only the physical GPU has a meter
    energy[is_slice] = BLANK
    _blank_some(rng, util, watts, used, nodes, day)

    picked = np.flatnonzero(kept)
    minute = np.tile(np.arange(MINUTES, dtype=np.int64), slots)[picked]
    slot = np.repeat(np.arange(slots), MINUTES)[picked]

    def column(values: np.ndarray) -> np.ndarray:
        return values.reshape(-1)[picked]

    label = column(painted.label)
    columns = {
        "timestamp": pa.array((day * 1000 + minute * 60_000), pa.timestamp("ms", tz="UTC")),
        "Hostname": _coded(owner[slot], nodes),
        "gpu": pa.array(index[slot]),
        "GPU_I_ID": _coded(instance[slot] - _FIRST_INSTANCE, [str(_FIRST_INSTANCE + i) for i in range(MIG_SLICES)]),
        **_label_columns(cluster, label, painted.labels),
        "DCGM_FI_DEV_GPU_UTIL": pa.array(column(util)),
        "DCGM_FI_PROF_SM_ACTIVE": pa.array(column((sm_active / 1000).astype(np.float32))),
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": pa.array(column((tensor_active / 1000).astype(np.float32))),
        "DCGM_FI_DEV_POWER_USAGE": pa.array(column(watts)),
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": pa.array(column(energy)),
        "DCGM_FI_DEV_FB_USED": pa.array(column(used.astype(np.int64))),
    }
    table = pa.table(columns)
    return _with_broken_rows(table) if day == PERIOD_START else table


def _coded(codes: np.ndarray, names: list[str]) -> pa.DictionaryArray:
    """Names by their code; a negative code is null."""
    codes = codes.astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(names, pa.string()))


def _label_columns(cluster: str, label: np.ndarray, labels: list[str]) -> dict[str, pa.Array]:
    if cluster != "nimbus":
        return {"hpc_job": _unique(label, labels)}
    return {
        "hpc_job": pa.nulls(len(label), pa.string()),
        "namespace": _unique(label, [text.partition("/")[0] for text in labels]),
        "pod": _unique(label, [text.partition("/")[2] for text in labels]),
    }


def _unique(label: np.ndarray, names: list[str]) -> pa.DictionaryArray:
    """Like `_coded`, for labels of which several have the same name (a requeued job). Code 0 is nobody.

    A dictionary with repeated values is not written the same way each time.
    """
    distinct = sorted(set(names[1:]))
    codes = np.array([-1, *(distinct.index(name) for name in names[1:])], dtype=np.int32)
    return _coded(codes[label], distinct)


def _energy(
    world: World,
    cluster: str,
    day: int,
    nodes: list[str],
    owner: np.ndarray,
    tenths: np.ndarray,
    kept: np.ndarray,
    counters: dict[str, np.ndarray],
) -> np.ndarray:
    """Cumulative mJ per GPU. Counters are carried from day to day and start at zero after a reset."""
    energy = np.cumsum(np.where(kept, tenths, 0).astype(np.int64) * (100 * 60), axis=1)
    resets = {node: _minute(at(time), day) for node, time in RESETS[cluster] if day <= at(time) < day + DAY}
    for i, node in enumerate(nodes):
        rows = slice(i * GPUS, i * GPUS + GPUS)
        first = np.array([mix(node, gpu, "mJ") * 1_000 for gpu in range(GPUS)], dtype=np.int64)
        energy[rows] += counters.get(node, first)[:, None]
        if node in resets:
            energy[rows, resets[node] :] -= energy[rows, resets[node], None].copy()
        counters[node] = energy[rows, -1].copy()
    return energy


def _blank_some(
    rng: np.random.Generator,
    util: np.ndarray,
    watts: np.ndarray,
    used: np.ndarray,
    nodes: list[str],
    day: int,
) -> None:
    """Values that DCGM did not have: single ones anywhere, and hours of one GPU."""
    slots, minutes = util.shape
    for values, share in ((util, 4e-4), (watts, 1e-4), (used, 1e-4)):
        count = int(values.size * share)
        values[rng.integers(slots, size=count), rng.integers(minutes, size=count)] = BLANK
    gpu = mix(day, "sick") % slots
    if mix(day, len(nodes)) % 4 == 0:
        util[gpu, 300:480] = BLANK
        watts[gpu, 300:480] = float(BLANK)


def _with_broken_rows(table: pa.Table) -> pa.Table:
    """Two samples of nobody: one without a host, one without a time."""
    broken = table.slice(0, 2).to_pylist()
    broken[0]["Hostname"] = None
    broken[1]["timestamp"] = None
    extra = pa.Table.from_pylist(broken, schema=_plain(table.schema))
    return pa.concat_tables([table, extra.cast(table.schema)])


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )
