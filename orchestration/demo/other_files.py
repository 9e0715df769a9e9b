"""The smaller sources: node inventory, cost sheet of the owned cluster, storage usage, licence seats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from .clock import DAY, HOUR, MINUTE, PERIOD_START, at, day_name, dice, iso, month_bounds
from .company import MEMBERS, OWNED, PERSONAL_ACCOUNT, PROJECTS
from .files import write_csv
from .world import World, mix

TIB = 1 << 40
GIB = 1 << 30


def write_inventory(inbox: Path, world: World) -> dict[str, int]:
    header = "cluster,node,resource_id,provider,instance_type,pool,gpu_model,gpus,cores,memory_gib,from,to"
    rows = []
    for stay in world.fleet.stays:
        if stay.listed and stay.start < world.end and (stay.end is None or stay.end > PERIOD_START):
            machine = stay.machine
            size = (machine.gpu_model, machine.gpus, machine.cores, machine.memory_gib)
            span = (iso(stay.start), "" if stay.end is None else iso(stay.end))
            where = (stay.cluster, stay.node, stay.resource_id, stay.provider, machine.name, stay.pool)
            rows.append((*where, *size, *span))
    rows.sort(key=lambda row: (row[0], row[1], row[10]))
    # an old node, entered by hand and long gone
    scrapped = ("alps", "alps-r0n01", "asset-1001", OWNED, "dgx-v100", "alps-a100", "v100", "eight", 80, 512)
    rows.append((*scrapped, "2019-03-01T00:00:00Z", "2024-05-01T00:00:00Z"))
    write_csv(inbox / "inventory" / "nodes.csv", header, rows, world.end + 20 * MINUTE)
    return {"nodes": len({(row[0], row[1]) for row in rows[:-1]})}


# ── cost sheet ───────────────────────────────────────────────────────────────────────────────────────
_SHEET = "cost_id,description,cost_type,resource_id,pool,period_start,period_end,amount,currency,tags"
_MONTHLY = (
    ("Parallel file system", "depreciation", "scratch", "9204.166666667", "USD", None),
    ("Home file system", "depreciation", "home", "1150.5", "USD", None),
    ("Colocation, A100 racks", "colocation", "alps-a100", "14820.00", "CHF", None),
    ("Colocation, interactive nodes", "colocation", "alps-a100-interactive", "1360.00", "CHF", None),
    ("Colocation, CPU rack", "colocation", "alps-cpu", "985.35", "CHF", None),
    ("Colocation, storage", "colocation", "scratch", "912.40", "CHF", None),
    ("Power, A100 racks", "power", "alps-a100", "21430.55", "CHF", None),
    ("Power, interactive nodes", "power", "alps-a100-interactive", "1711.05", "CHF", None),
    ("Power, CPU rack", "power", "alps-cpu", "624.90", "CHF", None),
    ("Solver licences for partition sim", "license", "sim-solver", "6400.00", "USD", None),
    ("Solver add-on, robotics only", "license", "sim-solver", "799.99", "USD", {"team": "robotics"}),
    ("Platform engineers on call", "staff", "", "41250.00", "CHF", None),
)
"""Description, type, pool, amount per month, currency, tags."""


def write_cost_sheet(inbox: Path, world: World) -> dict[str, int]:
    rows = [_sheet_row(number, *entry) for number, entry in enumerate(_sheet_entries(world), start=1)]
    rows.append(["oc-bad", "Fans", "other", "", "alps-a100", "2026-01-01", "2026-02-01", "12k", "CHF", ""])
    delivered = world.end + 2 * HOUR
    write_csv(inbox / "billing" / "cost_sheet" / "owned_2026.csv", _SHEET, rows, delivered)
    return {"cost sheet rows": len(rows)}


def _sheet_entries(world: World) -> Iterator[tuple]:
    """Description, type, resource, pool, start, end, amount, currency, tags."""
    yield (
        "Profiler, 40 seats, a year",
        "license",
        "",
        "profiler-pro",
        _JANUARY,
        at("2027-01-01"),
        "24090",
        "USD",
        None,
    )
    yield (
        "Insurance refund, water damage",
        "other",
        "",
        "",
        _JANUARY,
        at("2026-02-01"),
        "-350.00",
        "USD",
        None,
    )
    month = PERIOD_START
    while month < world.end:
        start, end = month_bounds(month)
        for description, kind, pool, amount, currency, tags in _MONTHLY:
            yield description, kind, "", pool, start, end, amount, currency, tags
        owned = {stay.node: stay for stay in world.fleet.stays if stay.provider == OWNED}
        for node, stay in sorted(owned.items()):
            if stay.start >= end:
                continue
            amount = "5312.376712329" if stay.machine.gpus else "486.25"
            begins = max(start, stay.start // DAY * DAY)
            yield (
                f"Depreciation {node}",
                "depreciation",
                stay.resource_id,
                "",
                begins,
                end,
                amount,
                "USD",
                None,
            )
        month = end


_JANUARY = at("2026-01-01")


def _sheet_row(number, description, kind, resource, pool, start, end, amount, currency, tags) -> list[str]:
    text = json.dumps(tags) if tags else ""
    span = (day_name(start), day_name(end))
    return [f"oc-{number:04}", description, kind, resource, pool, *span, amount, currency, text]


# ── storage ──────────────────────────────────────────────────────────────────────────────────────────
def write_storage(inbox: Path, world: World) -> dict[str, int]:
    header = "filesystem,path,owner,group,bytes,date"
    readings = 0
    for day in world.days:
        age = (day - PERIOD_START) // DAY
        rows = [
            (filesystem, path, owner, group, size + age * (size // 1000 * (mix(path) % 9 - 2)), day_name(day))
            for filesystem, path, owner, group, size in _PATHS
        ]
        if age == 1:
            rows.append(("scratch", "/scratch/vision/lost+found", "root", "vision", "n/a", day_name(day)))
        delivered = day + DAY + 40 * MINUTE
        write_csv(inbox / "storage" / f"usage_{day_name(day)}.csv", header, rows, delivered)
        readings += len(rows)
    return {"storage readings": readings}


def _paths() -> Iterator[tuple[str, str, str, str, int]]:
    for team, people in MEMBERS.items():
        for project in PROJECTS[team]:
            for number, folder in enumerate(("checkpoints", "data", "logs")):
                path = f"/scratch/{team}/{project}/{folder}"
                owner = people[mix(path) % len(people)]
                yield "scratch", path, owner, team, (3 - number) ** 3 * TIB // 2 + mix(path, 1) * 300
        yield "scratch", f"/scratch/{team}/tmp", people[0], team, mix(team, "tmp") * 900
        for person in people:
            yield "home", f"/home/{person}", person, PERSONAL_ACCOUNT, 2 * GIB + mix(person) * 40
        bucket = f"corp-datasets/{team}/curated"
        yield "corp-datasets", bucket, f"svc-{team}", team, 20 * TIB + mix(bucket) * 9_000
    yield "scratch", "/scratch/challenge-2024", "thesis07", "thesis-2024", 11 * TIB
    yield "home", "/home/thesis07", "thesis07", "thesis-2024", 60 * GIB
    yield "corp-datasets", "corp-datasets/common/crawl", "svc-data", "research", 410 * TIB
    yield "corp-datasets", "corp-datasets/unsorted", "svc-import", "import", 33 * TIB


_PATHS = list(_paths())


# ── licences ─────────────────────────────────────────────────────────────────────────────────────────
def write_licenses(inbox: Path, world: World) -> dict[str, int]:
    """A file per month with every checkout that touches it, as known when the month (or the period) ended."""
    sessions = _sessions(world)
    header = "product,user,account,host,seats,checked_out,checked_in"
    month = PERIOD_START
    while month < world.end:
        start, end = month_bounds(month)
        taken = min(end, world.end) + 10 * MINUTE
        rows = [
            (*who, iso(out), iso(back) if back <= taken else "")
            for who, out, back in sessions
            if out < min(end, world.end) and back > start
        ]
        if month == PERIOD_START:
            rows.append(("profiler-pro", "amara", PERSONAL_ACCOUNT, "ws-1", "two", iso(start), iso(start + HOUR)))
        write_csv(inbox / "license" / f"seats_{day_name(month)[:7]}.csv", header, rows, taken)
        month = end
    return {"licence checkouts": len(sessions)}


def _sessions(world: World) -> list[tuple[tuple, int, int]]:
    people = [person for members in MEMBERS.values() for person in members]
    found = []
    for day in world.days:
        rng = dice(world.seed, "seats", day)
        working = (day // DAY + 3) % 7 < 5
        for _ in range(14 if working else 3):
            person = people[rng.integers(len(people))]
            out = day + 7 * HOUR + int(rng.integers(14 * HOUR))
            back = out + 10 * MINUTE + int(rng.exponential(2.5) * HOUR)
            seats = 2 if rng.random() < 0.1 else 1
            who = ("profiler-pro", person, PERSONAL_ACCOUNT, f"ws-{mix(person) % 40}", seats)
            found.append((who, out, min(back, out + 2 * DAY)))
    # someone who never closes it, over the end of the month
    idler = ("profiler-pro", "hugo", PERSONAL_ACCOUNT, "ws-77", 1)
    found.append((idler, at("2026-01-31T16:12"), at("2026-02-03T09:05")))
    found.append((("profiler-pro", "guest01", "guest", "ws-78", 1), at("2026-01-02T10:00"), at("2026-01-02T19:30")))
    return sorted(session for session in found if session[1] < world.end)
