"""Text files into DuckDB: every line exactly once, with its line number, in bounded memory.

Delivered text is broken in ways that a CSV reader either refuses (losing the whole file) or skips (losing the
line without a trace): truncated lines, quotes that never close, bad UTF-8, byte-order marks. Here a file is
read in blocks of whole lines, and lines are numbered before they are parsed. The work per line happens inside
Arrow and DuckDB, not in Python.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery
from orchestration.errors import ApportionError

BLOCK_BYTES = 4 << 20
PROBE_BYTES = 64 << 10
LONGEST_LINE = 256 << 20
"""What has no line end for so long is no text of lines; reading on would only fill the memory."""
FLUSH_ROWS = 50_000
WORKERS = min(4, os.cpu_count() or 1)
UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError, UnicodeError)
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
Result = TypeVar("Result")


def packing(path: Path) -> str:
    """What a file is packed with: `gzip`, `zip` or nothing. Its first bytes say it, names do not."""
    with path.open("rb") as probe:
        magic = probe.read(4)
    if magic.startswith(b"\x1f\x8b"):
        return "gzip"
    return "zip" if magic == b"PK\x03\x04" else ""


def blocks(path: Path, end: bytes = b"\n") -> Iterator[bytes]:
    """The file in pieces of whole lines: unpacked, without byte-order mark, valid UTF-8, LF line ends.

    Formats that need no lines may name another sign of ASCII after which a piece may end.
    """
    waiting: list[bytes] = []
    first = True
    try:
        with _opened(path) as stream:
            while piece := stream.read(BLOCK_BYTES):
                cut = piece.rfind(end) + 1
                if not cut:
                    waiting.append(piece)
                    if sum(map(len, waiting)) > LONGEST_LINE:
                        raise _endless(path, end)
                    continue
                block = b"".join([*waiting, piece[:cut]])
                waiting = [piece[cut:]]
                yield _clean(block, first)
                first = False
    except UNREADABLE as error:
        raise _unreadable(path, error) from error
    if rest := b"".join(waiting):
        yield _clean(rest, first)


def _unreadable(path: Path, error: Exception) -> ApportionError:
    return ApportionError(f"{path}: cannot be read: {error}", "deliver the file again, or move it out of the inbox")


def _endless(path: Path, end: bytes) -> ApportionError:
    return ApportionError(
        f"{path}: more than {LONGEST_LINE >> 20} MiB without a single {end.decode()!a}",
        "this is no text that can be read piece by piece: deliver it as the vendor writes it",
    )


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file: unpacked, and in UTF-8 if its mark says that it is in UTF-16."""
    with _unpacked(path) as stream:
        mark = stream.peek(2)[:2] if isinstance(stream, io.BufferedReader | gzip.GzipFile | zipfile.ZipExtFile) else b""
        yield _Recoded(stream) if mark in UTF16_MARKS else stream  # type: ignore[misc]


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    packed = packing(path)
    if packed == "gzip":
        with gzip.open(path, "rb") as stream:
            yield stream
    elif packed == "zip":
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
            if len(members) != 1:
                raise ApportionError(
                    f"{path}: the archive holds {len(members)} files instead of one",
                    "unpack it into the inbox: each file is a delivery of its own",
                )
            with archive.open(members[0]) as stream:
                yield stream
    else:
        with path.open("rb") as stream:
            yield stream


class _Recoded:
    """A stream of UTF-16 as a stream of UTF-8, which is what spreadsheets save as "Unicode text"."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-16", errors="replace", newline="")

    def read(self, size: int) -> bytes:
        return self._text.read(size).encode()


def _clean(block: bytes, first: bool) -> bytes:
    if first:
        block = block.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        # Alone it ends the lines of a file that has no others. Elsewhere Arrow's reader would cut the line there.
        block = block.replace(b"\r", b"\n" if first and b"\n" not in block else b" ")
    try:
        block.decode()
    except UnicodeDecodeError:
        # One unreadable letter in a job name is no reason to lose what the job cost.
        block = block.decode(errors="replace").encode()
    return block


def numbered_lines(path: Path) -> Iterator[tuple[int, pa.StringArray]]:
    """Blocks of lines with the number of their first line."""
    number = 1
    for block in blocks(path):
        lines = lines_of(block)
        yield number, lines
        number += len(lines)


def lines_of(block: bytes) -> pa.StringArray:
    text = pa.array([block.decode().removesuffix("\n")], pa.string())
    return pc.list_flatten(pc.split_pattern(text, "\n"))


def in_parallel(
    work: Callable[[int, bytes], Result], numbered: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, bytes, Result]]:
    """Each numbered block with what `work` makes of it, in their order; a few of them are under way at any time.

    For work that happens inside Arrow and NumPy, which let other threads run meanwhile.
    """
    with ThreadPoolExecutor(WORKERS) as pool:
        waiting: deque[tuple[int, bytes, Future[Result]]] = deque()
        for number, block in numbered:
            waiting.append((number, block, pool.submit(work, number, block)))
            if len(waiting) > 2 * WORKERS:
                first, text, done = waiting.popleft()
                yield first, text, done.result()
        for first, text, done in waiting:
            yield first, text, done.result()


def beginning(path: Path) -> str:
    """The first letters of a file, without leading blanks: enough to see what it is, and quickly read from any file."""
    try:
        with _opened(path) as stream:
            return _clean(stream.read(PROBE_BYTES), first=True).decode(errors="replace").lstrip()
    except UNREADABLE as error:
        raise _unreadable(path, error) from error


def raw_lines(path: Path, wanted: set[int]) -> dict[int, str]:
    """The text of some lines, to show in quarantine what was really delivered."""
    found: dict[int, str] = {}
    for start, lines in numbered_lines(path):
        here = sorted(number for number in wanted if start <= number < start + len(lines))
        found |= {number: lines[number - start].as_py() for number in here}
        if len(found) == len(wanted):
            break
    return found


class Sink:
    """Collects Arrow batches and appends them to a temp table, a few at a time."""

    def __init__(self, con: DuckDBPyConnection, table: str, schema: pa.Schema) -> None:
        self._con, self._table, self._batches, self._rows = con, table, [], 0
        self.schema = schema
        con.register("batches", schema.empty_table())
        con.execute(f"create or replace temp table {table} as from batches")
        con.unregister("batches")

    def add(self, batch: pa.Table) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= FLUSH_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._batches:
            self._con.register("batches", pa.concat_tables(self._batches))
            self._con.execute(f"insert into {self._table} from batches")
            self._con.unregister("batches")
            self._batches, self._rows = [], 0


def load_lines(
    con: DuckDBPyConnection, table: str, deliveries: Sequence[Delivery], *, header: bool
) -> tuple[list[str], list[int]]:
    """Non-empty lines of all files into temp table (file, line, raw); returns headers and counts by file."""
    sink = Sink(con, table, pa.schema([("file", pa.int64()), ("line", pa.int64()), ("raw", pa.string())]))
    headers, counts = [""] * len(deliveries), [0] * len(deliveries)
    for file, delivery in enumerate(deliveries):
        for start, lines in numbered_lines(delivery.path):
            filled = pc.not_equal(pc.utf8_trim_whitespace(lines), "")
            number = np.arange(start, start + len(lines))[filled.to_numpy(zero_copy_only=False)]
            lines = lines.filter(filled)
            if header and not headers[file] and len(lines):
                headers[file], lines, number = lines[0].as_py(), lines[1:], number[1:]
            counts[file] += len(lines)
            sink.add(pa.table({"file": np.full(len(number), file), "line": number, "raw": lines}))
        if header and not headers[file]:
            raise without_header(delivery)
        if not header and not counts[file]:
            raise _without_rows(delivery)
    sink.flush()
    return headers, counts


def without_header(delivery: Delivery) -> ApportionError:
    # Taken at its word, an empty file would say that nothing happened in its window and erase those days.
    return ApportionError(
        f"{delivery.path}: the file is empty, not even a header line",
        "deliver it again; a window in which nothing happened has a header and no rows",
    )


def _without_rows(delivery: Delivery) -> ApportionError:
    return ApportionError(
        f"{delivery.path}: the file is empty",
        "deliver it again; if nothing happened in its window, remove the file",
    )
