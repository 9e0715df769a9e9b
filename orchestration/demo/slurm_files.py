"""Slurm's own words: `sacct`, `sacctmgr show event` and `scontrol show reservation`, one dump per UTC day."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .clock import DAY, DUMP_DELAY, PERIOD_START, day_name, plain, stamp
from .company import LOCAL_OFFSET, SLURM_CLUSTERS, USER_IDS
from .files import write_text
from .fleet import Outage, Reservation
from .habits import checkpoint_minutes, limit_minutes
from .placement import Run, active
from .workload import Request
from .world import REDELIVERED_AT, REDELIVERED_DAY, Part, World, mix, parts

SACCT_HEADER = (
    "JobIDRaw|JobID|JobName|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|Suspended|{limit}|"
    "AllocTRES|NodeList|ExitCode|Comment"
)
_LIMIT_COLUMN = {"alps": "Timelimit", "cirrus": "TimelimitRaw"}
EVENT_HEADER = "Cluster|Cluster Nodes|NodeName|TimeStart|TimeEnd|Duration|State|StateRaw|Reason|User|TRES"
_GPU_TYPE = {"alps": "a100", "cirrus": "h100"}
_NODE_TRES = {
    "alps": "billing=91,cpu=128,gres/gpu:a100=8,gres/gpu=8,mem=1000G",
    "cirrus": "billing=201,cpu=192,gres/gpu:h100=8,gres/gpu=8,mem=2000G",
}
_EXIT_CODES = {"FAILED": "1:0", "TIMEOUT": "0:15", "OUT_OF_MEMORY": "0:125", "CANCELLED": "0:15"}


def write_slurm(inbox: Path, world: World) -> dict[str, int]:
    records = 0
    for cluster in SLURM_CLUSTERS:
        folder = inbox / "slurm" / cluster
        runs = world.runs[cluster]
        records += sum(1 for run in runs for _ in parts(run))
        for day in world.days:
            taken = day + DAY + DUMP_DELAY
            name = f"{day_name(day)}_{stamp(taken)}"
            shown = [run for run in active(runs, day) if cluster != "cirrus" or run is not world.belated]
            write_text(folder / f"sacct_{name}.psv", _sacct(cluster, world, shown, day, taken), taken)
            events = _events(cluster, world.fleet.outages, day, taken)
            write_text(folder / f"events_{name}.psv", events, taken)
            reservations = _reservations(cluster, world.fleet.reservations, day, taken)
            write_text(folder / f"reservations_{name}.txt", reservations, taken)
    if world.withdrawn is not None:
        shown = [run for run in active(world.runs["cirrus"], REDELIVERED_DAY) if run is not world.withdrawn]
        lines = _sacct("cirrus", world, shown, REDELIVERED_DAY, REDELIVERED_AT)
        name = f"sacct_{day_name(REDELIVERED_DAY)}_{stamp(REDELIVERED_AT)}.psv"
        write_text(inbox / "slurm" / "cirrus" / name, lines, REDELIVERED_AT)
    return {"slurm jobs": records}


def _time(cluster: str, second: int | None) -> str:
    """alps prints local time without a zone, cirrus (SLURM_TIME_FORMAT=%s) epoch seconds."""
    if second is None:
        return "Unknown"
    return plain(second + LOCAL_OFFSET[cluster]) if cluster in LOCAL_OFFSET else str(second)


# ── sacct ────────────────────────────────────────────────────────────────────────────────────────────
def _sacct(cluster: str, world: World, shown: list[Run], day: int, taken: int) -> Iterator[str]:
    """Every job of the day as slurmdbd knew it at `taken`."""
    yield SACCT_HEADER.format(limit=_LIMIT_COLUMN[cluster])
    for run in shown:
        for part in parts(run):
            yield from _records(cluster, run, part, taken)
    yield from _never_started(cluster, world, day, taken)
    yield from _broken(cluster, (day - PERIOD_START) // DAY, day)


def _records(cluster: str, run: Run, part: Part, taken: int) -> Iterator[str]:
    """A job and its steps, which repeat the job's resources."""
    request = run.request
    ended = run.end is not None and run.end <= taken
    end = run.end if ended else None
    state = run.state if ended else "RUNNING"
    suspended = run.suspended if (taken if end is None else end) - run.start > 2 * run.suspended else 0
    elapsed = (taken if end is None else end) - run.start - suspended
    code = _EXIT_CODES.get(state, "0:0")
    step_state = state
    if state == "CANCELLED":
        who = USER_IDS[request.user] if mix(request.number) % 4 else 0
        state = f"CANCELLED by {who}"
    if state in ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL"):
        step_state = "CANCELLED"
    start_text, end_text = _time(cluster, run.start), _time(cluster, end)
    times = f"{elapsed}|{_clock(suspended)}"
    everywhere = node_list(part.nodes)
    tres = _tres(cluster, request, len(part.nodes))
    yield (
        f"{part.label}|{part.job_id}|{request.name}|{request.user}|{request.account}|{request.partition}|"
        f"{request.qos}|{state}|{_time(cluster, run.submit)}|{start_text}|{end_text}|{times}|"
        f"{_limit(cluster, request)}|billing={request.cores * len(part.nodes)},{tres}|{everywhere}|{code}|"
        f"{_comment(request)}"
    )
    one = _tres(cluster, request, 1)
    span = f"{start_text}|{start_text}|{end_text}|{times}|"
    for step, where, held in (
        (".batch", part.nodes[0], one),
        (".extern", everywhere, tres),
        (".0", everywhere, tres),
    ):
        if step == ".0" and mix(request.number, "srun") % 5 > 1:
            continue
        title = {".batch": "batch", ".extern": "extern", ".0": "python"}[step]
        yield (
            f"{part.label}{step}|{part.job_id}{step}|{title}||{request.account}|||{step_state}|{span}|"
            f"{held}|{where}|{code}|"
        )


def _limit(cluster: str, request: Request) -> str:
    """alps prints `1-12:00:00`, cirrus minutes."""
    minutes = limit_minutes(request)
    if cluster == "cirrus":
        return "Partition_Limit" if minutes is None else str(minutes)
    if minutes is None:
        return "UNLIMITED"
    days, rest = divmod(minutes * 60, DAY)
    return f"{days}-{_clock(rest)}" if days else _clock(rest)


def _comment(request: Request) -> str:
    minutes = checkpoint_minutes(request)
    return f"{request.comment} checkpoint_minutes={minutes}".lstrip() if minutes else request.comment


def _tres(cluster: str, request: Request, nodes: int) -> str:
    """AllocTRES in the spellings that occur: GPUs typed, untyped or both; memory with and without a unit."""
    kind = mix(request.number, "tres") % 20
    gpus, cores, mib = request.gpus * nodes, request.cores * nodes, request.memory_mib * nodes
    typed, untyped = f"gres/gpu:{_GPU_TYPE[cluster]}={gpus},", f"gres/gpu={gpus},"
    gres = "" if gpus == 0 else typed if kind == 0 else untyped if kind == 1 else typed + untyped
    memory = f"{mib}M" if kind == 2 else f"{mib}" if kind == 3 else f"{mib * 1024}K" if kind == 4 else _gib(mib)
    return f"cpu={cores},{gres}mem={memory},node={nodes}"


def _gib(mib: int) -> str:
    if mib % 1024 == 0:
        return f"{mib // 1024}G"
    return f"{mib / 1024:.2f}G" if mib % 256 == 0 else f"{mib}M"


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _never_started(cluster: str, world: World, day: int, taken: int) -> Iterator[str]:
    """Jobs that wait, and jobs that were cancelled while they waited."""
    queued = [(run.submit, run.request) for run in world.runs[cluster] if run.submit < day + DAY <= taken < run.start]
    queued += [(request.submit, request) for request in world.waiting[cluster] if request.submit < day + DAY]
    for submit, request in sorted(queued, key=lambda entry: (entry[0], entry[1].number)):
        times = f"{_time(cluster, submit)}|Unknown|Unknown|0|00:00:00|{_limit(cluster, request)}"
        yield f"{_title(request, request.number)}|PENDING|{times}||None assigned|0:0|"
    for run in world.runs[cluster]:
        request = run.request
        if day <= run.submit < day + DAY and mix(request.number, "regret") % 97 == 0:
            gone = 10_000_000 + request.number  # an id that no other job has
            state = f"CANCELLED by {USER_IDS[request.user]}"
            ended = f"{_time(cluster, run.submit + 90)}|0|00:00:00|{_limit(cluster, request)}"
            times = f"{_time(cluster, run.submit)}|None|{ended}"
            yield f"{_title(request, gone)}|{state}|{times}||None assigned|0:0|"


def _title(request: Request, number: int) -> str:
    owner = f"{request.user}|{request.account}|{request.partition}|{request.qos}"
    return f"{number}|{number}|{request.name}|{owner}"


def _broken(cluster: str, number: int, day: int) -> Iterator[str]:
    """Rows as a full disk, a vertical bar in a job's name or a bad clock leave them."""
    early, late = _time(cluster, day + 3_600), _time(cluster, day + 7_200)
    tail = f"3600|00:00:00||billing=8,cpu=8,mem=32G,node=1|{_ANY_NODE[cluster]}|0:0|"
    owner = "amara|nlp|" + ("cpu" if cluster == "alps" else "h100") + "|normal"
    if number == 1:
        yield f"9000001|9000001|cut-off|{owner}|COMPLETED|{early}|{early[:4]}"
    if number == 2:
        yield f"9000002|9000002|left|right|{owner}|COMPLETED|{early}|{early}|{late}|{tail}"
    if number == 9:
        yield f"9000003|9000003|backwards|{owner}|COMPLETED|{early}|{late}|{early}|{tail}"


_ANY_NODE = {"alps": "alps-c01", "cirrus": "cir-r01"}


# ── node lists ───────────────────────────────────────────────────────────────────────────────────────
def node_list(names: Iterable[str]) -> str:
    """Names in Slurm's bracket notation: `alps-r[1-2]n[01-04]`, `cir-r[01-03,07],cir-od-02`."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        prefix, digits = re.fullmatch(r"(.*?)(\d+)", name).groups()
        groups.setdefault(prefix, []).append(digits)
    ranges = {prefix: _bracket(digits) for prefix, digits in groups.items()}
    racks = [prefix for prefix in ranges if re.fullmatch(r"alps-r\dn", prefix)]
    if len(racks) > 1 and len({ranges[rack] for rack in racks}) == 1 and len(racks) == len(ranges):
        return f"alps-r{_bracket([rack[6] for rack in racks])}n{ranges[racks[0]]}"
    return ",".join(prefix + text for prefix, text in ranges.items())


def _bracket(digits: list[str]) -> str:
    if len(digits) == 1:
        return digits[0]
    pieces, first, last = [], digits[0], digits[0]
    for value in [*digits[1:], None]:
        if value is not None and int(value) == int(last) + 1:
            last = value
            continue
        pieces.append(first if first == last else f"{first}-{last}")
        first = last = value
    return f"[{','.join(pieces)}]"


# ── events and reservations ──────────────────────────────────────────────────────────────────────────
def _events(cluster: str, outages: list[Outage], day: int, taken: int) -> Iterator[str]:
    yield EVENT_HEADER
    since = _time(cluster, PERIOD_START - 200 * DAY)
    yield f"{cluster}|{_ANY_NODE[cluster]}||{since}|Unknown|200-00:00:00||0|Cluster Registered TRES||cpu=1"
    together: dict[tuple, list[str]] = {}
    for outage in outages:
        ends = outage.end if outage.end is not None else taken
        overlaps = outage.start < day + DAY and (ends > day or outage.start == ends >= day)
        if outage.cluster == cluster and overlaps:
            end = outage.end if outage.end is not None and outage.end <= taken else None
            together.setdefault((outage.start, end, outage.state, outage.reason), []).append(outage.node)
    for (start, end, state, reason), nodes in sorted(together.items(), key=lambda entry: (entry[0][0], entry[1])):
        raw = 513 if state == "DRAIN" else 1
        lasted = _clock((end if end is not None else taken) - start)
        yield (
            f"{cluster}||{node_list(nodes)}|{_time(cluster, start)}|{_time(cluster, end)}|{lasted}|{state}|"
            f"{raw}|{reason}|root(0)|{_NODE_TRES[cluster]}"
        )
    if (day - PERIOD_START) // DAY == 2:
        yield f"{cluster}||{_ANY_NODE[cluster]}|not-a-time|Unknown|00:00:00|DOWN|1|clock was wrong|root(0)|"


def _reservations(cluster: str, found: list[Reservation], day: int, taken: int) -> Iterator[str]:
    """What was set aside on that day, or will be in the next days. alps prints several lines, cirrus one."""
    separator = "\n   " if cluster == "alps" else " "
    blocks = []
    for reservation in found:
        if reservation.cluster == cluster and day < reservation.end and reservation.start < day + 4 * DAY:
            state = "ACTIVE" if reservation.start <= taken < reservation.end else "INACTIVE"
            flags = "MAINT,IGNORE_JOBS,SPEC_NODES" if reservation.is_maintenance else "SPEC_NODES"
            times = f"StartTime={_time(cluster, reservation.start)} EndTime={_time(cluster, reservation.end)}"
            users, accounts = (",".join(names) or "(null)" for names in (reservation.users, reservation.accounts))
            lasts, nodes = _clock(reservation.end - reservation.start), node_list(reservation.nodes)
            block = f"""ReservationName={reservation.name} {times} Duration={lasts}
Nodes={nodes} NodeCnt={len(reservation.nodes)} Features=(null) PartitionName=(null) Flags={flags}
TRES=cpu={128 * len(reservation.nodes)}
Users={users} Groups=(null) Accounts={accounts} Licenses=(null) State={state} BurstBuffer=(null) Watts=n/a
MaxStartDelay=(null)"""
            blocks.append(separator.join(block.splitlines()))
    if (day - PERIOD_START) // DAY == 3:
        blocks.append(
            f"ReservationName=typo StartTime=soon EndTime={_time(cluster, day + DAY)} Duration=1-00:00:00"
            f"{separator}Nodes={_ANY_NODE[cluster]} NodeCnt=1{separator}Users=(null) Accounts=nlp"
        )
    yield ("\n\n" if cluster == "alps" else "\n").join(blocks) or "No reservations in the system"
