"""The demo company: a generated inbox in the raw formats that real vendors use.

Three clusters, 480 GPUs, about 25,000 jobs and 24 million telemetry samples over 35 days, with the awkward
things that real data has. The same seed gives the same bytes.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from orchestration.errors import ApportionError

from .billing import deliver_waiting, write_billing
from .clock import FIRST_DAY, MAX_DAYS, PERIOD_START
from .other_files import write_cost_sheet, write_inventory, write_licenses, write_storage
from .pod_files import write_pods
from .slurm_files import write_slurm
from .telemetry import write_telemetry
from .world import build_world

__all__ = ["CLOSED_MONTH", "CORRECTED_DAYS", "FIRST_DAY", "SCENARIO", "deliver_correction", "generate"]

SCENARIO = "platform-pays-idle"
"""The what-if of the project's own seeds that the demo shows."""

CLOSED_MONTH = date(2026, 1, 1)
CORRECTED_DAYS = date(2026, 1, 27), date(2026, 1, 29)
"""What the provider corrects after that month is closed."""

MARKER = ".generated"
"""In every generated inbox, so that a real one is never mistaken for it and replaced."""

WRITERS = (
    write_telemetry,  # the longest by far, mostly outside the interpreter's lock: the others run beside it
    write_inventory,
    write_slurm,
    write_pods,
    write_billing,
    write_cost_sheet,
    write_storage,
    write_licenses,
)


def deliver_correction(data_dir: Path) -> list[Path]:
    return deliver_waiting(data_dir / "inbox")


def generate(data_dir: Path, days: int = MAX_DAYS, seed: int = 7) -> dict[str, int]:
    """Write `<data_dir>/inbox`, replacing an older one, and return what it holds.

    Everything is written beside the inbox and renamed into place, so that a generation that is killed leaves
    the older inbox or none, never half of one.
    """
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"the demo company has a history of 1 to {MAX_DAYS} days, not {days}")
    data_dir.mkdir(parents=True, exist_ok=True)
    beside, inbox, older = (data_dir / name for name in ("inbox.new", "inbox", "inbox.old"))
    if inbox.exists() and not (inbox / MARKER).exists():
        raise ApportionError(
            f"{inbox} holds files that the demo did not generate",
            "give the demo a data folder of its own: apportion --data demo-data demo",
        )
    if (data_dir / "ledger").exists() and not (inbox / MARKER).exists():
        raise ApportionError(
            f"{data_dir} holds closed months of somebody else",
            "give the demo a data folder of its own: apportion --data demo-data demo",
        )
    for leftover in (beside, older):
        shutil.rmtree(leftover, ignore_errors=True)
    world = build_world(seed, days)
    counts: dict[str, int] = {}
    with ThreadPoolExecutor(max_workers=2) as pool:
        for written in pool.map(lambda write: write(beside, world), WRITERS):
            counts |= written
    (beside / MARKER).touch()
    os.utime(beside / MARKER, (PERIOD_START, PERIOD_START))
    if inbox.exists():
        # Another company from here on: what was closed of the last one is none of its months.
        shutil.rmtree(data_dir / "ledger", ignore_errors=True)
        inbox.rename(older)
    beside.rename(inbox)
    shutil.rmtree(older, ignore_errors=True)
    return counts
