"""How much of the machine the warehouse may take: all its cores, and a memory that follows them but leaves room.

`APPORTION_THREADS` and `APPORTION_MEMORY` (such as `2GB`) overrule both.
"""

from __future__ import annotations

import os
from pathlib import Path

LEAST_MB, PER_THREAD_MB = 450, 225
"""Beyond this DuckDB spills to disk. A week of 2,000 GPUs takes 7 % less processor time with twice as much, which is
not worth the memory of whatever else runs on the machine; each thread needs its own part."""
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def threads() -> str:
    affinity = getattr(os, "sched_getaffinity", None)
    return os.environ.get("APPORTION_THREADS") or str(len(affinity(0)) if affinity else os.cpu_count() or 1)


def builders() -> str:
    """How many models are built at once: most are too small to keep more than one core busy."""
    return os.environ.get("APPORTION_BUILDERS") or str(min(2, int(threads())))


def memory_limit() -> str:
    wanted = max(LEAST_MB, PER_THREAD_MB * int(threads()))
    return os.environ.get("APPORTION_MEMORY") or f"{min(wanted, _available_mb() // 2)}MB"


def _available_mb() -> int:
    """What the machine has, or the container that this runs in."""
    installed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    allowed = _CGROUP_LIMIT.read_text().strip() if _CGROUP_LIMIT.exists() else "max"
    return min(installed, int(allowed) if allowed.isdigit() else installed) >> 20
