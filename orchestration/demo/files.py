"""Writing the inbox: the same bytes and the same modification times on every run."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def write_bytes(path: Path, content: bytes, delivered: int) -> None:
    """Write a file whose modification time says when it was delivered."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (delivered, delivered))


def write_text(path: Path, lines: Iterable[str], delivered: int) -> None:
    text = "\n".join(lines) + "\n"
    content = text.encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=4, mtime=0)
    write_bytes(path, content, delivered)


def write_csv(path: Path, header: str, rows: Iterable[Sequence[object]], delivered: int) -> None:
    buffer = io.StringIO()
    buffer.write(header + "\n")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows(rows)
    write_text(path, [buffer.getvalue().removesuffix("\n")], delivered)
