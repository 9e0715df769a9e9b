"""What each partition is asked for on a usual day: how many jobs, how large, how long, by whom."""

from __future__ import annotations

from dataclasses import dataclass

from .company import MACHINES

POOL_MACHINES = {
    "alps-a100": MACHINES["dgx-a100"],
    "alps-a100-interactive": MACHINES["dgx-a100"],
    "alps-cpu": MACHINES["cpu-epyc-128"],
    "cirrus-h100-reserved": MACHINES["h100-8"],
    "cirrus-h100-on-demand": MACHINES["h100-8"],
    "cirrus-h100-spot": MACHINES["h100-8"],
    "nimbus-l4-reserved": MACHINES["l4-8"],
    "nimbus-l4-spot": MACHINES["l4-8"],
    "nimbus-a100": MACHINES["a100-8"],
}


@dataclass(frozen=True)
class Demand:
    """The usual day of one partition."""

    cluster: str
    partition: str
    pool: str
    per_day: int
    load: float
    """Share of the pool's GPU time that is asked for on a working day (of core time where there are none)."""
    sizes: dict[int, float]
    """Total GPUs → share of the jobs. Without GPUs in the pool: cores."""
    median_minutes: float
    max_hours: int
    teams: dict[str, float]
    util: tuple[float, float]
    """Mean busy percent of small and of whole-node jobs."""


_VISION = {"nlp": 2, "vision": 5, "speech": 3, "search": 2, "assistant": 1, "robotics": 3}
_NLP = {"nlp": 6, "vision": 2, "speech": 1, "search": 2, "assistant": 4, "robotics": 1}
_PRODUCT = {"nlp": 1, "vision": 1, "speech": 2, "search": 4, "assistant": 5, "robotics": 1}
_SIM = {"robotics": 8, "vision": 1, "search": 1}
_SIZES = {0: 0.03, 1: 0.51, 2: 0.13, 4: 0.12, 8: 0.135, 16: 0.045, 32: 0.02, 64: 0.01}
_CORES = {4: 0.3, 8: 0.25, 16: 0.2, 32: 0.15, 64: 0.07, 128: 0.03}

_TRIALS = ("train", "finetune", "finetune", "eval", "sweep", "sweep", "ablation", "distill", "filter", "try")
_SESSIONS = ("debug", "debug", "debug", "debug", "notebook", "notebook", "notebook", "profile", "profile", "plot")
LARGE_JOB_NAMES = ("pretrain",) * 5 + ("train",) * 3 + ("finetune", "distill")
"""What people call a job on several nodes."""
JOB_NAMES = {
    "batch": _TRIALS,
    "h100": _TRIALS,
    "burst": _TRIALS,
    "spot": _TRIALS,
    "a100": _TRIALS,
    "interactive": _SESSIONS,
    "mig": _SESSIONS,
    "cpu": ("tokenize", "tokenize", "dedup", "shard", "filter", "decode", "index", "merge", "stats", "crawl"),
    "sim": ("rollout",) * 6 + ("scene",) * 4,
    "l4": ("eval", "eval", "eval", "embed", "embed", "export", "export", "predict", "predict", "debug"),
    "l4-spot": ("embed",) * 4 + ("predict",) * 3 + ("export",) * 2 + ("eval",),
}
"""What people call the others, by partition. Ten each: one draw decides."""

DEMANDS = (
    Demand("alps", "batch", "alps-a100", 258, 0.86, _SIZES, 14, 60, _VISION, (34, 47)),
    Demand("alps", "interactive", "alps-a100-interactive", 46, 0.5, {1: 0.8, 2: 0.2}, 50, 10, _VISION, (9, 9)),
    Demand("alps", "cpu", "alps-cpu", 76, 0.45, _CORES, 12, 20, _PRODUCT, (0, 0)),
    Demand("alps", "sim", "alps-cpu", 20, 0.25, {32: 0.7, 64: 0.3}, 60, 20, _SIM, (0, 0)),
    Demand(
        "cirrus",
        "h100",
        "cirrus-h100-reserved",
        112,
        0.78,
        {1: 0.3, 2: 0.1, 4: 0.14, 8: 0.28, 16: 0.1, 32: 0.06, 64: 0.02},
        22,
        60,
        _NLP,
        (38, 52),
    ),
    Demand(
        "cirrus",
        "burst",
        "cirrus-h100-on-demand",
        30,
        0.7,
        {1: 0.2, 4: 0.2, 8: 0.5, 16: 0.1},
        40,
        9,
        _NLP,
        (40, 50),
    ),
    Demand(
        "cirrus",
        "spot",
        "cirrus-h100-spot",
        52,
        0.85,
        {1: 0.4, 4: 0.2, 8: 0.35, 16: 0.05},
        30,
        20,
        _NLP,
        (35, 45),
    ),
    Demand(
        "nimbus",
        "l4",
        "nimbus-l4-reserved",
        60,
        0.3,
        {0: 0.06, 1: 0.69, 2: 0.15, 4: 0.1},
        25,
        30,
        _PRODUCT,
        (30, 35),
    ),
    Demand(
        "nimbus",
        "l4-spot",
        "nimbus-l4-spot",
        52,
        0.8,
        {1: 0.6, 2: 0.2, 4: 0.15, 8: 0.05},
        40,
        30,
        _PRODUCT,
        (36, 40),
    ),
    Demand("nimbus", "a100", "nimbus-a100", 11, 0.72, {1: 0.5, 2: 0.3, 4: 0.2}, 60, 24, _PRODUCT, (35, 40)),
    Demand("nimbus", "mig", "nimbus-a100", 26, 0.1, {1: 1.0}, 90, 10, _VISION, (12, 12)),
)

MAX_HOURS = {(demand.cluster, demand.partition): demand.max_hours for demand in DEMANDS}
"""The longest job that each partition takes."""
