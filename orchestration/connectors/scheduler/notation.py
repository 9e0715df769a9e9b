"""What the notations of Slurm and Kubernetes for amounts have in common, read exactly.

Amounts become the integer units of the landing tables once; `Fraction` keeps `62.50G` and `100m` exact until the one
rounding, half away from zero.
"""

from __future__ import annotations

import re
from fractions import Fraction

_MIG = re.compile(r"(?:mig-)?(\d+)g\.(\d+)gb")
_QUARTER_GPU = {("1", "6"), ("2", "12"), ("4", "24")}
"""MIG profiles of the A30, the one model that has four slices instead of seven."""


def half_away(value: Fraction) -> int:
    whole = int(abs(value) + Fraction(1, 2))
    return whole if value >= 0 else -whole


def mig_share(profile: str) -> Fraction | None:
    """Which part of a GPU a MIG profile (`1g.10gb`, `mig-3g.40gb`) is; None for whole GPUs."""
    found = _MIG.match(profile)
    if not found:
        return None
    return Fraction(int(found[1]), 4 if found.groups() in _QUARTER_GPU else 7)
