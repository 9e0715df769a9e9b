"""What tables of storage usage call their columns: our own names, those of common tools, or those of the settings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestration.connectors.base import Delivery
from orchestration.connectors.tables import Layout
from orchestration.errors import ApportionError
from orchestration.settings import ColumnFrom, StorageSource

NAMES = {
    "filesystem": ("filesystem", "fs", "bucket", "bucket_name", "volume", "storageclass", "storage_class"),
    "path": ("path", "directory", "folder", "prefix", "fileset", "pvc", "persistentvolumeclaim"),
    "owner": ("owner", "user", "user_name", "username"),
    "group": ("group", "account", "project", "group_name"),
    "date": ("date", "day", "usage_date", "report_date", "timestamp"),
    "namespace": ("namespace",),
    "key": ("key",),
}
SIZES = {"bytes": 1, "kib": 2**10, "kbytes": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
"""Units whose name leaves no doubt. A kilobyte may be 1000 or 1024 bytes, so columns in kB need a factor."""
SIZE_NAME = re.compile(r"(?:(?:bucket)?size|used|usage|stored|storage|blocks?)?_?(bytes|kib|kbytes|mib|gib|tib)")
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
COLUMNS = (*NAMES, "size")


def understood(source: StorageSource, delivery: Delivery, header: Sequence[str]) -> tuple[Layout, float]:
    """Where a table has our columns, and the bytes in one unit of its sizes."""
    plain = [name.strip().lower().replace(" ", "_") for name in header]
    places = {ours: plain.index(name) for ours, names in NAMES.items() for name in reversed(names) if name in plain}
    factor = float(UNITS[source.unit or "bytes"])
    for at, name in enumerate(plain):
        if found := SIZE_NAME.fullmatch(name):
            places["size"], factor = at, float(SIZES[found[1]])
            break
    if "size" not in places and "size" in plain and (source.unit or "key" in places):
        places["size"] = plain.index("size")
    for ours, said in source.columns.items():
        column = said.column if isinstance(said, ColumnFrom) else said
        place = column.strip().lower().replace(" ", "_")
        if place not in plain:
            raise _missing(delivery, column, header, f"correct 'columns.{ours}' of the source")
        places["size" if ours == "bytes" else ours] = plain.index(place)
        if ours == "bytes":
            factor = said.factor if isinstance(said, ColumnFrom) else factor
    if "size" not in places:
        raise _missing(
            delivery, "bytes", header, "name it in 'columns' of the source, with a factor if it is not bytes"
        )
    if "filesystem" not in places and source.filesystem is None:
        raise _missing(delivery, "filesystem", header, "say what is measured with 'filesystem' of the source")
    variant = "listing of objects" if "key" in places else "storage readings"
    used = set(places.values())
    return Layout(places, variant, tuple(name for at, name in enumerate(header) if at not in used)), factor


def _missing(delivery: Delivery, column: str, header: Sequence[str], remedy: str) -> ApportionError:
    shown = ", ".join(header[:12]) + (", …" if header[12:] else "")
    return ApportionError(f"{delivery.path}, line 1: missing column {column} (found: {shown})", remedy)
