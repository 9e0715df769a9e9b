"""Who and what the demo company is: its clusters, machines, teams, people and prices.

The policy seeds in `seeds/` describe the same company from the side of finance; `tests/unit/test_demo.py`
keeps the two in step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class MachineType:
    """What one node of a kind holds."""

    name: str
    gpu_model: str
    gpus: int
    cores: int
    memory_gib: int


MACHINES = {
    machine.name: machine
    for machine in (
        MachineType("dgx-a100", "a100", 8, 128, 1_000),
        MachineType("cpu-epyc-128", "", 0, 128, 512),
        MachineType("h100-8", "h100", 8, 192, 2_000),
        MachineType("l4-8", "l4", 8, 96, 384),
        MachineType("a100-8", "a100", 8, 96, 1_360),
    )
}

IDLE_WATTS = {"a100": 58, "h100": 72, "l4": 16}
FULL_WATTS = {"a100": 395, "h100": 690, "l4": 72}
GPU_MEMORY_MIB = {"a100": 81_920, "h100": 81_559, "l4": 23_034}

OWNED, CLOUD = "on-premises", "Stratus"
"""The provider names in cost sheet and cloud bill. Stratus is no real company."""

# ── clusters and pools ───────────────────────────────────────────────────────────────────────────────
SLURM_CLUSTERS = ("alps", "cirrus")
ALL_CLUSTERS = ("alps", "cirrus", "nimbus")
LOCAL_OFFSET = {"alps": 3_600}
"""alps prints local time of Zurich, which is UTC+1 throughout the (winter) period; cirrus prints epochs."""

POOL_PARTITIONS = {
    "alps-a100": ("batch",),
    "alps-a100-interactive": ("interactive",),
    "alps-cpu": ("cpu", "sim"),
    "cirrus-h100-reserved": ("h100",),
    "cirrus-h100-on-demand": ("burst",),
    "cirrus-h100-spot": ("spot",),
    "nimbus-l4-reserved": ("l4",),
    "nimbus-l4-spot": ("l4-spot",),
    "nimbus-a100": ("a100", "mig"),
}

MIG_NODE = "nim-a100-01"
MIG_GPUS = (7,)
MIG_SLICES = 7
"""One GPU of this node is cut into seven slices, for notebooks."""
MIG_CORES, MIG_MEMORY_GIB = 14, 98
"""What the node's slices may take of its cores and memory; the rest belongs to its seven whole GPUs."""

# ── teams and people ─────────────────────────────────────────────────────────────────────────────────
_PEOPLE = {
    "nlp": "amara boris chen dalia emil farah goran hana ivo jana kofi lars mira nadia",
    "vision": "oskar priya quentin rosa samir tomas ulla viktor wanda xenia yusuf zoe",
    "speech": "aisha bruno clara dmitri elif felix greta hugo",
    "search": "ines jonas karin leo maya nils olga pavel rafael sofia",
    "assistant": "tariq ursula vera wim yara zeno alma basil cora",
    "robotics": "dario enya fabio gita hiro irma jakub",
}
MEMBERS = {team: names.split() for team, names in _PEOPLE.items()}
TEAMS = tuple(MEMBERS)
MOVED_AT = "2026-01-15"
MOVERS = {
    "samir": ("vision", "nlp"),
    "wanda": ("vision", "nlp"),
    "felix": ("speech", "assistant"),
    "olga": ("search", "vision"),
    "gita": ("robotics", "vision"),
}
UNKNOWN_USERS = ("guest01", "guest02", "thesis07")
UID_BASE = 61_000
USER_IDS = {user: UID_BASE + n for n, user in enumerate((*chain(*MEMBERS.values()), *UNKNOWN_USERS))}

PROJECTS = {
    "nlp": ("nlp-foundation", "nlp-eval"),
    "vision": ("vision-detect", "vision-gen"),
    "speech": ("speech-asr",),
    "search": ("search-ranking", "search-embed"),
    "assistant": ("assistant-tuning", "assistant-serving"),
    "robotics": ("robotics-policy", "robotics-sim"),
}
PROJECT_ACCOUNTS = {"nlp": "nlp-pretrain", "robotics": "robotics-sim", "search": "search-ranking"}
"""Slurm accounts that stand for one project; a team's own name is its general account."""
PERSONAL_ACCOUNT = "users"
"""Everybody's default account: only the user tells who pays. People who move teams mostly use it."""
UNKNOWN_ACCOUNTS = ("guest", "thesis-2024")
UNKNOWN_NAMESPACES = ("sandbox", "hackday")
NAMESPACES = {
    "nlp": "nlp-eval",
    "vision": "vision-eval",
    "speech": "speech-asr",
    "search": "search-embed",
    "assistant": "assistant-tuning",
    "robotics": "robotics-policy",
}


def team_of(user: str, day: str) -> str:
    """The team of a person on a UTC day such as `2026-01-15`."""
    if user in MOVERS:
        return MOVERS[user][day >= MOVED_AT]
    return next((team for team, people in MEMBERS.items() if user in people), "")


# ── prices of the cloud, in USD per node and hour, as billionths so that no bill is ever a float ─────
NANO = 1_000_000_000
LIST_PRICE = {"h100-8": 98_320_000_000, "l4-8": 8_041_280_000, "a100-8": 40_966_000_000}
RESERVED_PRICE = {"h100-8": 55_040_312_500, "l4-8": 5_066_006_400}
CONTRACT_DISCOUNT_PERCENT = 7
"""Off the list price for on-demand use."""
COMMITMENTS = {
    "h100-8": ("cmt-h100-3y-no-upfront", 14),
    "l4-8": ("cmt-l4-1y-all-upfront", 6),
}
"""Commitment id and the nodes that it pays for, used or not."""
