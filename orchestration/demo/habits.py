"""What people tell the scheduler about their jobs besides their size: how long at most, how often they save."""

from __future__ import annotations

from .demands import MAX_HOURS
from .workload import Request
from .world import mix

_USUAL_LIMITS = (30, 60, 120, 240, 480, 720, 1_440, 2_880, 3_600)
"""Minutes: people ask for round times."""


def limit_minutes(request: Request) -> int | None:
    """The time limit; None for those who ask for none. Most ask for more than they need, some for much more."""
    needed = -(-request.seconds // 60)
    if request.outcome == "TIMEOUT":
        return max(_USUAL_LIMITS[0], needed)
    draw = mix(request.array_number or request.number, "limit") % 12
    if draw == 0:
        return None
    most = MAX_HOURS[request.cluster, request.partition] * 60
    wanted = needed * (1, 2, 4)[draw % 3]
    return next((limit for limit in _USUAL_LIMITS if wanted <= limit <= most), most)


def checkpoint_minutes(request: Request) -> str:
    """What a job says about its checkpoints. Those on several nodes mostly do, a few of them in words."""
    distributed = request.nodes > 1 or request.kind == "PyTorchJob"
    draw = mix(request.number, "checkpoint") % 20
    if not distributed or draw < 4:
        return ""
    return "auto" if draw == 4 else str(request.activity.checkpoint_minutes)
