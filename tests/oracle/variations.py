"""The same world, a little different: another policy, a job that was cut, renamed, made larger or joined by others."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from .seed_tables import SEED_COLUMNS, Row
from .worlds import World

SIZES = ("gpu_units", "cpu_millicores", "memory_mib", "measured_cpu_millicores", "measured_memory_mib")
MILLISECOND = timedelta(milliseconds=1)


def with_rows(world: World, table: str, rows: list[Row]) -> World:
    side = "seeds" if table in world.seeds else "tables"
    return replace(world, **{side: {**getattr(world, side), table: rows}})


def changed(world: World, table: str, **values: Any) -> World:
    """Every row of a table with these values instead."""
    rows = world.seeds[table] if table in world.seeds else world.tables[table]
    return with_rows(world, table, [row | values for row in rows])


def without_rows(world: World, *tables: str) -> World:
    for table in tables:
        world = with_rows(world, table, [])
    return world


def policy_row(world: World, table: str, **values: Any) -> Row:
    """A seed row valid on the world's day."""
    validity = {"valid_from": world.day, "valid_to": world.day + timedelta(days=1), "reason": "variation"}
    return dict.fromkeys(SEED_COLUMNS[table]) | validity | values


def under(world: World, method: str, idle: str, window: str | None = None, **policy: Any) -> World:
    """One method for every pool and component, one rule for every idle cause, and nothing moved afterwards."""
    everywhere = {"pool_id": "*", "component": "*", "method": method, **policy}
    world = with_rows(world, "allocation_policies", [policy_row(world, "allocation_policies", **everywhere)])
    rule = {"pool_id": "*", "idle_cause": "*", "policy": idle, "idle_window": window}
    world = with_rows(world, "idle_policies", [policy_row(world, "idle_policies", **rule)])
    return without_rows(world, "adjustments", "outcome_policies")


def with_positive_costs(world: World) -> World:
    costs = ("list_cost", "billed_cost", "effective_cost")
    charges = [
        charge | {name: abs(charge[name]) for name in costs if charge[name] is not None}
        for charge in world.tables["charges"]
    ]
    return with_rows(world, "charges", charges)


# --- jobs --------------------------------------------------------------------------------------------------


def instead_of(world: World, job: Row, *others: Row) -> World:
    kept = [row for row in world.tables["jobs"] if row is not job]
    return with_rows(world, "jobs", [*kept, *others])


def single_parts(world: World) -> list[Row]:
    """Jobs that can be cut without rounding anything but money: of one part, on one node, never suspended."""
    keys = [job["job_key"] for job in world.tables["jobs"]]
    return [
        job
        for job in world.tables["jobs"]
        if keys.count(job["job_key"]) == 1 and "," not in (job["node_names"] or "") and not job["suspended_ms"]
    ]


def ends(job: Row) -> Any:
    return max(job["start_at"], job["end_at"] if job["end_at"] is not None else job["as_of_at"])


def part_of(job: Row, number: int, **values: Any) -> Row:
    """A job of its own; telemetry still names it by the part id."""
    return job | {"job_key": f"{job['job_key']}/{number}", **values}


def cut_in_time(world: World, job: Row, share: float) -> World:
    """One run becomes two that follow each other."""
    end = ends(job)
    middle = job["start_at"] + int((end - job["start_at"]) / MILLISECOND * share) * MILLISECOND
    first = part_of(job, 1, end_at=middle, as_of_at=job["as_of_at"])
    return instead_of(world, job, first, part_of(job, 2, start_at=middle))


def cut_in_size(world: World, job: Row, share: float) -> World:
    """One run becomes two beside each other that hold together what it held."""
    smaller = {name: int(job[name] * share) for name in SIZES if job[name] is not None}
    rest = {name: job[name] - held for name, held in smaller.items()}
    return instead_of(world, job, part_of(job, 1, **smaller), part_of(job, 2, **rest))


def larger(world: World, job: Row, factor: int) -> World:
    held = {name: job[name] * factor for name in SIZES if job[name] is not None}
    return instead_of(world, job, job | held)


def beside(world: World, job: Row, **values: Any) -> World:
    """Another job for the payer of this one."""
    extra = job | {"job_key": f"{job['job_key']}/beside", "part_id": "beside", "bytes_out": None, "suspended_ms": 0}
    return with_rows(world, "jobs", [*world.tables["jobs"], extra | values])
