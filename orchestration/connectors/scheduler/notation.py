"""Slurm's and Kubernetes' own notations for nodes and amounts, read exactly.

Amounts become the integer units of the landing tables here, once; `Fraction` keeps `62.50G` or `100m` exact
until the one rounding, half away from zero.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction

from orchestration.landing.schemas import GPU_UNITS_PER_GPU

NO_NODES = {"", "None assigned", "(null)", "None", "N/A"}
MOST_NODES = 100_000
"""More names than any cluster has: a typing error, not a list."""

_RANGE = re.compile(r"(\d+)(?:-(\d+))?$")
_MEMORY_MIB = {
    "K": Fraction(1, 1024),
    "": Fraction(1),
    "M": Fraction(1),
    "G": Fraction(1024),
    "T": Fraction(1024**2),
}
_MIG = re.compile(r"(?:mig-)?(\d+)g\.(\d+)gb")
_QUARTER_GPU = {("1", "6"), ("2", "12"), ("4", "24")}
"""MIG profiles of the A30, the one model that has four slices instead of seven."""
_SUFFIX = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([a-zA-Z]*))$")


def half_away(value: Fraction) -> int:
    whole = int(abs(value) + Fraction(1, 2))
    return whole if value >= 0 else -whole


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
        if int(high) - int(low) > MOST_NODES:
            raise ValueError(f"node list of more than {MOST_NODES} names: {item[:80]}")
        middles += [str(number).zfill(len(low)) for number in range(int(low), int(high) + 1)]
    return [f"{before}{middle}{end}" for middle in middles for end in _expand(after)]


def node_names(text: str) -> tuple[str | None]:
    """The landing column: names in alphabetical order, separated by commas."""
    return (",".join(sorted(expand_nodes(text))) or None,)


def parse_tres(text: str) -> tuple[int, int | None, int | None]:
    """`cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=62.50G` to (gpu_units, cpu_millicores, memory_mib).

    Typed GPUs repeat the untyped count, so the untyped one wins. A MIG instance counts as its share of a GPU.
    """
    amounts = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.partition("=")
        if not equals:
            raise ValueError(f"AllocTRES that cannot be read: {item[:80]}")
        amounts[name.strip()] = value.strip()
    typed = {name[9:]: _count(value) for name, value in amounts.items() if name.startswith("gres/gpu:")}
    total = _count(amounts["gres/gpu"]) if "gres/gpu" in amounts else sum(typed.values(), Fraction(0))
    not_whole = sum(count * (1 - share) for name, count in typed.items() if (share := mig_share(name)))
    cpu = amounts.get("cpu")
    memory = amounts.get("mem")
    return (
        half_away((total - not_whole) * GPU_UNITS_PER_GPU),
        None if cpu is None else half_away(_count(cpu) * 1000),
        None if memory is None else _memory_mib(memory),
    )


def mig_share(profile: str) -> Fraction | None:
    """Which part of a GPU a MIG profile (`1g.10gb`, `mig-3g.40gb`) is; None for whole GPUs."""
    found = _MIG.match(profile)
    if not found:
        return None
    return Fraction(int(found[1]), 4 if found.groups() in _QUARTER_GPU else 7)


def _count(text: str) -> Fraction:
    """A TRES count; Slurm shortens big ones to `1.50K`."""
    scale = {"K": 1000, "M": 1000**2, "G": 1000**3}.get(text[-1:].upper(), 1)
    try:
        count = Fraction(text[:-1] if scale > 1 else text) * scale
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"AllocTRES with a bad number: {text[:40]}") from None
    if count < 0:
        raise ValueError(f"AllocTRES with a negative number: {text[:40]}")
    return count


def _memory_mib(text: str) -> int:
    found = re.match(r"(\d+(?:\.\d+)?)([KMGT]?)$", text)
    if not found:
        raise ValueError(f"AllocTRES with bad memory: {text[:40]}")
    return half_away(Fraction(found[1]) * _MEMORY_MIB[found[2]])


def quantity(text: str) -> Fraction:
    """A Kubernetes quantity: `500m`, `64Gi`, `1e3`, `0.5`."""
    found = _QUANTITY.match(text.strip())
    if not found or (found[3] or "") not in _SUFFIX:
        raise ValueError(f"quantity that cannot be read: {text[:40]}")
    return Fraction(found[1] + (found[2] or "")) * _SUFFIX[found[3] or ""]


def parse_requests(text: str) -> tuple[int, int | None, int | None]:
    """A pod's requests (JSON object) to (gpu_units, cpu_millicores, memory_mib)."""
    requests = json.loads(text)
    if not isinstance(requests, dict):
        raise ValueError("requests is not an object")
    amounts = {name: quantity(str(value)) for name, value in requests.items() if value is not None}
    if any(amount < 0 for amount in amounts.values()):
        raise ValueError("requests is negative")
    gpus = Fraction(0)
    for name, amount in amounts.items():
        _, slash, device = name.partition("/")
        if slash and device == "gpu":
            gpus += amount
        elif slash and (share := mig_share(device)) is not None:
            gpus += amount * share
    return (
        half_away(gpus * GPU_UNITS_PER_GPU),
        half_away(amounts["cpu"] * 1000) if "cpu" in amounts else None,
        half_away(amounts["memory"] / 2**20) if "memory" in amounts else None,
    )
