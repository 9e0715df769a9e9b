"""The states of Slurm's jobs and nodes, in every spelling."""

from __future__ import annotations

import re

_SHORT = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "LF": "LAUNCH_FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PO": "POWER_UP_NODE",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RD": "RESV_DEL_HOLD",
    "RF": "REQUEUE_FED",
    "RH": "REQUEUE_HOLD",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "SE": "SPECIAL_EXIT",
    "SI": "SIGNALING",
    "SO": "STAGE_OUT",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
    "UP": "UPDATE_DB",
}
ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REVOKED",
    "TIMEOUT",
)
"""A job in one of these states has an end."""
_NAMES = sorted({*_SHORT.values(), *ENDED})

_AVAILABLE = {
    *("IDLE", "ALLOCATED", "ALLOC", "MIXED", "MIX", "COMPLETING", "COMP", "PLANNED", "PLND", "RESERVED", "RESV"),
    *("RESUME", "UNDRAIN", "CLOUD", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "PERFCTRS", "NPC", "BLOCKED"),
    # A node that sleeps to save power wakes up for the next job.
    *("POWERED_DOWN", "POWER_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_UP", "POWERED_UP"),
}
_UNAVAILABLE_MARKS = "*$@^"
"""Behind a node's state: not responding, maintenance, and the two for a reboot."""
_NEUTRAL_MARKS = "~#!%-"
"""Behind a node's state: the stages of saving power, and planned for a job."""


def job_state(text: str) -> tuple[str]:
    """The long name of a job's state: of `CANCELLED by 1000`, of `CD`, and of `OUT_OF_ME+`, which was cut off.

    A state that is new to us keeps its own word.
    """
    found = re.match(r"([A-Za-z_]+)(\+?)", text)
    if not found:
        raise ValueError(f"State is not a state: {text[:40]}")
    word = found[1].upper()
    if found[2]:
        fitting = [name for name in _NAMES if name.startswith(word)]
        return (fitting[0] if len(fitting) == 1 else word,)
    return (_SHORT.get(word, word),)


def is_available(text: str) -> tuple[bool]:
    """Whether a node in this state takes jobs. sacctmgr lists the times when nodes do not, so a word that is new to us
    counts as such."""
    plain = text.upper().rstrip(_NEUTRAL_MARKS)
    words = plain.rstrip(_UNAVAILABLE_MARKS).replace(" ", "+").split("+")
    return (not plain.endswith(tuple(_UNAVAILABLE_MARKS)) and all(word in _AVAILABLE for word in words if word),)
