"""Text files into DuckDB: every line exactly once, with its line number, in bounded memory.

Delivered text is broken in ways that a CSV reader either refuses (losing the whole file) or skips (losing the
line without a trace): truncated lines, quotes that never close, bad UTF-8, byte-order marks. Here a file is
read in blocks of whole lines, lines are numbered before they are parsed, and what cannot be parsed comes back
as a `Reject`. The work per line happens inside Arrow and DuckDB, not in Python.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Reject
from orchestration.connectors.sql import identifier
from orchestration.errors import ApportionError

BLOCK_BYTES = 4 << 20
FLUSH_ROWS = 50_000
NULLS = ["", "NULL", "\\N"]
LONGEST_RECORD = 200
"""Lines that a quoted value may span before its open quote counts as a mistake."""


def blocks(path: Path) -> Iterator[bytes]:
    """The file in pieces of whole lines: decompressed, without byte-order mark, valid UTF-8, LF line ends."""
    rest = b""
    first = True
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            while piece := stream.read(BLOCK_BYTES):
                piece = rest + piece
                cut = piece.rfind(b"\n") + 1
                block, rest = piece[:cut], piece[cut:]
                if block:
                    yield _clean(block, first)
                    first = False
    except (OSError, EOFError, zlib.error) as error:
        raise ApportionError(
            f"{path}: cannot be read: {error}", "deliver the file again, or move it out of the inbox"
        ) from error
    if rest:
        yield _clean(rest, first)


def _clean(block: bytes, first: bool) -> bytes:
    if first:
        block = block.removeprefix(b"\xef\xbb\xbf")
    if b"\r\n" in block:
        block = block.replace(b"\r\n", b"\n")
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
        text = pa.array([block.decode().removesuffix("\n")], pa.string())
        lines = pc.list_flatten(pc.split_pattern(text, "\n"))
        yield number, lines
        number += len(lines)


def raw_lines(path: Path, wanted: set[int]) -> dict[int, str]:
    """The text of some lines, to show in quarantine what was really delivered."""
    found: dict[int, str] = {}
    for start, lines in numbered_lines(path):
        here = sorted(number for number in wanted if start <= number < start + len(lines))
        found |= {number: lines[number - start].as_py() for number in here}
        if len(found) == len(wanted):
            break
    return found


class _Sink:
    """Collects Arrow batches and appends them to a temp table, a few at a time."""

    def __init__(self, con: DuckDBPyConnection, table: str, schema: pa.Schema) -> None:
        self._con, self._table, self._batches, self._rows = con, table, [], 0
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
    sink = _Sink(con, table, pa.schema([("file", pa.int64()), ("line", pa.int64()), ("raw", pa.string())]))
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
            raise _without_header(delivery)
        if not header and not counts[file]:
            raise _without_rows(delivery)
    sink.flush()
    return headers, counts


def load_csv(
    con: DuckDBPyConnection,
    table: str,
    deliveries: Sequence[Delivery],
    required: Sequence[str],
    optional: Sequence[str] = (),
) -> tuple[list[int], list[Reject]]:
    """The named columns of CSV files as text into temp table (file, line, …); returns row counts and rejects.

    A column that is optional and absent is NULL. Empty, `NULL` and `\\N` are NULL.
    """
    names = [*required, *optional]
    schema = pa.schema([("file", pa.int64()), ("line", pa.int64()), *((name, pa.string()) for name in names)])
    sink = _Sink(con, table, schema)
    counts, rejects = [0] * len(deliveries), []
    for file, delivery in enumerate(deliveries):
        rows = _CsvFile(file, delivery, required, names, schema)
        for batch in rows.batches():
            sink.add(batch)
        counts[file] = rows.count
        rejects += rows.rejects
    sink.flush()
    return counts, rejects


def _without_header(delivery: Delivery) -> ApportionError:
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


class _CsvFile:
    """One CSV file, cut into records that know their line."""

    def __init__(
        self, file: int, delivery: Delivery, required: Sequence[str], names: Sequence[str], schema: pa.Schema
    ) -> None:
        self._file, self._delivery, self._schema = file, delivery, schema
        self._required, self._names = required, names
        self._header: list[str] = []
        self.count = 0
        self.rejects: list[Reject] = []

    def batches(self) -> Iterator[pa.Table]:
        # A line with an odd number of quotes either begins a value that spans lines, or is broken. It is kept
        # back with what follows it until that is known.
        held: list[tuple[int, str]] = []
        for start, lines in numbered_lines(self._delivery.path):
            number = np.arange(start, start + len(lines))
            if not self._header:
                first = next((place for place, line in enumerate(lines.to_pylist()) if line.strip()), None)
                if first is None:
                    continue
                self._read_header(lines[first].as_py())
                lines, number = lines[first + 1 :], number[first + 1 :]
            quotes = pc.count_substring(lines, '"').to_numpy(zero_copy_only=False)
            odd = np.flatnonzero(quotes % 2)
            if not held and not len(odd):
                yield from self._parse(number, lines)
                continue
            done = 0
            for position in [*odd.tolist(), len(lines)]:
                if held and position - done + len(held) > LONGEST_RECORD:
                    yield from self._give_up(held)
                    held = []
                between = list(zip(number[done:position].tolist(), lines[done:position].to_pylist(), strict=True))
                if held:
                    held += between
                elif between:
                    yield from self._parse(number[done:position], lines[done:position])
                if position == len(lines):
                    break
                this = (int(number[position]), lines[position].as_py())
                done = position + 1
                if not held:
                    held = [this]
                elif (record := self._spanning([*held, this])) is not None:
                    yield record
                    held = []
                else:
                    yield from self._give_up(held)
                    held = [this]
        if held:
            yield from self._give_up(held)
        if not self._header:
            raise _without_header(self._delivery)

    def _read_header(self, line: str) -> None:
        self._header = next(csv.reader([line]), [])
        absent = [name for name in self._required if name not in self._header]
        if absent:
            raise ApportionError(
                f"{self._delivery.path}, line 1: missing column {', '.join(absent)} (found: {', '.join(self._header)})",
                "deliver the file with these columns, or correct the path of the source",
            )

    def _spanning(self, held: list[tuple[int, str]]) -> pa.Table | None:
        """Lines that make one record only together; None when they do not."""
        text = "\n".join(line for _, line in held)
        table, wrong = self._read(f"{held[0][0]},{text}".encode(), spanning=True)
        if wrong or table.num_rows != 1:
            return None
        self.count += 1
        return table

    def _give_up(self, held: list[tuple[int, str]]) -> Iterator[pa.Table]:
        """The first line has a quote that never closes: reject it alone, and read the rest as usual."""
        number, raw = held[0]
        self.count += 1
        self.rejects.append(Reject(self._file, number, "a quote is never closed", raw))
        if held[1:]:
            yield from self._parse(np.array([n for n, _ in held[1:]]), pa.array([line for _, line in held[1:]]))

    def _parse(self, number: np.ndarray, lines: pa.Array) -> Iterator[pa.Table]:
        filled = pc.not_equal(lines, "")
        numbered = pc.binary_join_element_wise(
            pc.cast(pa.array(number), pa.string()).filter(filled), lines.filter(filled), ","
        )
        if not len(numbered):
            return
        self.count += len(numbered)
        offsets = pa.array([0, len(numbered)], pa.int32())
        text = pc.binary_join(pa.ListArray.from_arrays(offsets, numbered), "\n")[0].as_buffer()
        table, wrong = self._read(text, spanning=False)
        for row in wrong:
            line, _, raw = row.text.partition(",")
            reason = f"has {row.actual_columns - 1} fields instead of {row.expected_columns - 1}"
            self.rejects.append(Reject(self._file, int(line), reason, raw))
        yield table

    def _read(self, text: pa.Buffer | bytes, *, spanning: bool) -> tuple[pa.Table, list[pacsv.InvalidRow]]:
        wrong: list[pacsv.InvalidRow] = []

        def skip(row: pacsv.InvalidRow) -> str:
            wrong.append(row)
            return "skip"

        wanted = {name: f"c{self._header.index(name)}" for name in self._names if name in self._header}
        try:
            table = pacsv.read_csv(
                pa.BufferReader(text),
                pacsv.ReadOptions(
                    use_threads=False,
                    block_size=2 * BLOCK_BYTES + len(text),
                    column_names=["line", *(f"c{position}" for position in range(len(self._header)))],
                ),
                pacsv.ParseOptions(invalid_row_handler=skip, newlines_in_values=spanning),
                pacsv.ConvertOptions(
                    include_columns=["line", *wanted.values()],
                    column_types={"line": pa.int64(), **dict.fromkeys(wanted.values(), pa.string())},
                    null_values=NULLS,
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid:
            if not spanning:
                raise
            return self._schema.empty_table(), wrong
        columns = [
            np.full(table.num_rows, self._file),
            table.column("line"),
            *(
                table.column(wanted[name]) if name in wanted else pa.nulls(table.num_rows, pa.string())
                for name in self._names
            ),
        ]
        return pa.table(columns, schema=self._schema), wrong


def columns_of(header: str, delimiter: str) -> dict[str, int]:
    """Where each column of a delimited header is, counted from 1 as SQL lists are."""
    return {name.strip(): place for place, name in enumerate(header.split(delimiter), start=1) if name.strip()}


def select_fields(
    table: str,
    headers: Sequence[str],
    delimiter: str,
    required: Sequence[str],
    optional: Sequence[str],
    deliveries: Sequence[Delivery],
) -> str:
    """Lines of a delimited dump without quoting (sacct -P) as columns, plus `fields` and `expected` counts.

    Dumps may differ in their columns from file to file; each kind of header gets its own SELECT.
    """
    kinds: dict[str, list[int]] = {}
    for file, header in enumerate(headers):
        kinds.setdefault(header, []).append(file)
    selects = []
    for header, files in kinds.items():
        place = columns_of(header, delimiter)
        absent = [name for name in required if name not in place]
        if absent:
            raise ApportionError(
                f"{deliveries[files[0]].path}, line 1: missing column {', '.join(absent)}",
                f"print these columns too, with a header line, separated by {delimiter!r} (see 'delimiter')",
            )
        fields = ", ".join(
            f"nullif(trim(cells[{place[name]}]), '') as {identifier(name)}"
            if name in place
            else f"cast(null as varchar) as {identifier(name)}"
            for name in [*required, *optional]
        )
        chosen = f"where file in ({', '.join(map(str, files))})" if len(kinds) > 1 else ""
        split = f"string_split(raw, '{delimiter.replace(chr(39), chr(39) * 2)}')"
        selects.append(
            f"select file, line, len(cells) as fields, {len(header.split(delimiter))} as expected, {fields}"
            f" from (select file, line, {split} as cells from {table} {chosen})"
        )
    if not selects:
        empty = ", ".join(f"cast(null as varchar) as {identifier(name)}" for name in [*required, *optional])
        return f"select file, line, 0 as fields, 0 as expected, {empty} from {table} where false"
    return " union all ".join(selects)
