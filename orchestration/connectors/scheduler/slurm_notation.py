"""Slurm's own notations for nodes and amounts, read exactly.

Amounts become the integer units of the landing tables here, once; `Fraction` keeps `62.50G` exact until the one
rounding, half away from zero.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

from orchestration.connectors.scheduler.notation import half_away, mig_share
from orchestration.landing.schemas import GPU_UNITS_PER_GPU

NO_NODES = {"", "None assigned", "(null)", "None", "N/A"}
MOST_NODES = 100_000
"""More names than any cluster has: a typing error, not a list."""
MOST_OF_ANYTHING = 10**13
"""GPUs, cores or MiB: a damaged number, which would not fit the landing tables."""
PER_CPU = 2**31, 2**63
"""The flags in a number of MiB by which versions before 21.08 say that it is per CPU."""
HELD_COLUMNS = ("AllocTRES", "AllocCPUS", "NCPUS", "AllocGRES", "ReqTRES", "ReqGRES", "ReqMem", "NNodes", "AllocNodes")
"""What a job held, in the order of trust: `held` takes their cells."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?$")
_MEMORY_MIB = {unit: Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=-1)} | {"": Fraction(1)}
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]?)(?:i?B)?([nc]?)", re.IGNORECASE)
_PROFILE = re.compile(r"(?:^|[_.:-])(?:(\d)c\.)?(\d+g\.\d+gb)", re.IGNORECASE)
_PERCENT = 100
"""`gres/mps` counts hundredths of a GPU."""

Amounts = tuple[int | None, int | None, int | None]
"""GPU units, thousandths of a core, MiB."""


def expand_nodes(text: str) -> list[str]:
    """`gpu[001-003,7],x[1-2]y[1-2]` to names, in order and once each."""
    if text in NO_NODES:
        return []
    names: dict[str, None] = {}
    for item in _split_outside_brackets(text):
        for name in _expand(item):
            names[name] = None
            if len(names) > MOST_NODES:
                raise ValueError(f"node list of more than {MOST_NODES} names: {text[:80]}")
    return list(names)


def _split_outside_brackets(text: str) -> list[str]:
    items, depth, item = [], 0, ""
    for letter in text:
        depth += {"[": 1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            items.append(item)
            item = ""
        else:
            item += letter
    if depth != 0:
        raise ValueError(f"node list with an open bracket: {text[:80]}")
    return [name for name in [*items, item] if name]


def _expand(item: str) -> list[str]:
    before, bracket, rest = item.partition("[")
    if not bracket:
        return [item]
    inside, _, after = rest.partition("]")
    middles: list[str] = []
    for part in inside.split(","):
        found = _RANGE.match(part)
        if not found:
            raise ValueError(f"node list that cannot be read: {item[:80]}")
        low, high = found[1], found[2] or found[1]
        if int(high) < int(low):
            raise ValueError(f"node list with a range that runs backwards: {item[:80]}")
        if int(high) - int(low) > MOST_NODES:
            raise ValueError(f"node list of more than {MOST_NODES} names: {item[:80]}")
        middles += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    ends = _expand(after)
    if len(middles) * len(ends) > MOST_NODES:
        raise ValueError(f"node list of more than {MOST_NODES} names: {item[:80]}")
    return [f"{before}{middle}{end}" for middle in middles for end in ends]


def node_names(text: str) -> tuple[str | None]:
    """The landing column: names in alphabetical order, separated by commas."""
    return (",".join(sorted(expand_nodes(text))) or None,)


def held(text: str, shards_per_gpu: int | None = None) -> Amounts:
    """What a job held, from the cells of HELD_COLUMNS as a JSON list, or from that of AllocTRES alone.

    AllocTRES says all of it, except GPUs where a site does not account them. Where it is missing (old versions, short
    lists of columns), cores, GPUs and memory come from the columns that say each of them alone, first from what was
    given and then from what was asked for; what none of them says is unknown.
    """
    alloc, *others = json.loads(text)
    if not others:
        return parse_tres(alloc, shards_per_gpu)
    alloc_cpus, cpus, gres, asked, asked_gres, memory, nodes, alloc_nodes = others
    node_count = _optional_count(nodes or alloc_nodes)
    given_gpus = _gres_units(gres, node_count, shards_per_gpu)
    if alloc:
        gpus, cores, mib = parse_tres(alloc, shards_per_gpu)
        return (gpus if "gres/" in alloc or given_gpus is None else given_gpus), cores, mib
    asked_gpus, asked_cpus, asked_mib = parse_tres(asked, shards_per_gpu) if asked else (None, None, None)
    cores = _optional_count(alloc_cpus or cpus)
    return (
        _first(given_gpus, asked_gpus, _gres_units(asked_gres, node_count, shards_per_gpu)),
        asked_cpus if cores is None else half_away(cores * 1000),
        _first(asked_mib, requested_mib(memory, node_count, cores)),
    )


def _first(*amounts: int | None) -> int | None:
    return next((amount for amount in amounts if amount is not None), None)


def _optional_count(text: str | None) -> Fraction | None:
    return None if text is None else _count(text)


def parse_tres(text: str, shards_per_gpu: int | None = None) -> tuple[int, int | None, int | None]:
    """`cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=62.50G` to (gpu_units, cpu_millicores, memory_mib).

    Typed GPUs repeat the untyped count, so the untyped one wins. A MIG instance counts as its share of a GPU, and so do
    shards and hundredths of one.
    """
    amounts = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"AllocTRES that cannot be read: {item[:80]}")
        amounts[name.strip()] = value.strip()
    gres = {name.removeprefix("gres/"): _count(value) for name, value in amounts.items() if name.startswith("gres/")}
    cpu, memory = amounts.get("cpu"), amounts.get("mem")
    return (
        _gpu_units(gres, shards_per_gpu),
        None if cpu is None else half_away(_count(cpu) * 1000),
        None if memory is None else _memory_mib(memory),
    )


def _gpu_units(gres: dict[str, Fraction], shards_per_gpu: int | None) -> int:
    """Counts by name (`gpu`, `gpu:a100`, `shard`) as units of a GPU; an untyped count covers the typed ones."""

    def total(kind: str) -> Fraction:
        typed = sum((count for name, count in gres.items() if name.startswith(f"{kind}:")), Fraction(0))
        return gres.get(kind, typed)

    not_whole = sum(count * (1 - _gpu_share(name)) for name, count in gres.items() if name.startswith("gpu:"))
    gpus = total("gpu") - not_whole
    if gpus < 0:
        raise ValueError("AllocTRES with more typed GPUs than GPUs")
    shards = total("shard") / shards_per_gpu if shards_per_gpu else Fraction(0)
    return half_away((gpus + shards + total("mps") / _PERCENT) * GPU_UNITS_PER_GPU)


def _gpu_share(name: str) -> Fraction:
    """Which part of a GPU one of a type is: all of `gpu:a100`, 3/7 of `gpu:nvidia_a100_3g.39gb`.

    A compute instance (`1c.3g.20gb`) is one of the slices of its GPU instance.
    """
    found = _PROFILE.search(name)
    share = mig_share(found[2].lower()) if found else None
    if found is None or share is None:
        return Fraction(1)
    return share * Fraction(int(found[1]), int(found[2].split("g")[0])) if found[1] else share


def _gres_units(text: str | None, nodes: Fraction | None, shards_per_gpu: int | None) -> int | None:
    """`gpu:8`, `gpu:a100:2` or `PER_NODE:gpu:8` of versions that had no TRES; unknown where the nodes are needed and
    not printed."""
    if text is None:
        return None
    counts: dict[str, Fraction] = {}
    for item in filter(None, text.split(",")):
        per_node = item.startswith(("PER_NODE:", "gres:PER_NODE:"))
        if per_node and nodes is None:
            return None
        words = item.split("PER_NODE:")[-1].removeprefix("gres:").split("(")[0].split(":")
        is_count = len(words) > 1 and words[-1][:1].isdigit() and not _PROFILE.search(words[-1])
        count = _count(words.pop()) if is_count else Fraction(1)
        name = ":".join(words)
        counts[name] = counts.get(name, Fraction(0)) + count * (nodes if per_node and nodes else 1)
    return _gpu_units(counts, shards_per_gpu)


def requested_mib(text: str | None, nodes: Fraction | None, cores: Fraction | None) -> int | None:
    """ReqMem: of the job, per node (`n`) or per core (`c`, or a flag in the number). Zero means all that a node has,
    which is not known here."""
    if text is None or text.strip("?") == "":
        return None
    found = _MEMORY.fullmatch(text.strip())
    if not found:
        raise ValueError(f"ReqMem that cannot be read: {text[:40]}")
    amount, unit, per = Fraction(found[1]) * _MEMORY_MIB[found[2].upper()], found[2].upper(), found[3].lower()
    for flag in reversed(PER_CPU):
        if amount >= flag:
            if unit not in ("", "K", "M"):
                return None  # rounded away together with the flag
            amount, per = amount - flag, "c"
    times = {"n": nodes, "c": cores, "": Fraction(1)}[per]
    return None if times is None or not amount else _possible(amount * times, text)


def _count(text: str) -> Fraction:
    """A TRES count; Slurm shortens big ones to `1.50K`, and divides all that it shortens by 1024."""
    scale = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1:].upper(), 1)
    try:
        count = Fraction(text[:-1] if scale > 1 else text) * scale
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"AllocTRES with a bad number: {text[:40]}") from None
    if count < 0:
        raise ValueError(f"AllocTRES with a negative number: {text[:40]}")
    if count > MOST_OF_ANYTHING:
        raise ValueError(f"AllocTRES with a number that no cluster has: {text[:40]}")
    return count


def _memory_mib(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPE]?)", text)
    if not found:
        raise ValueError(f"AllocTRES with bad memory: {text[:40]}")
    return _possible(Fraction(found[1]) * _MEMORY_MIB[found[2]], text)


def _possible(mib: Fraction, text: str) -> int:
    if mib > MOST_OF_ANYTHING:
        raise ValueError(f"memory that no cluster has: {text[:40]}")
    return half_away(mib)
