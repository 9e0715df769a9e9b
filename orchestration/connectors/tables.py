"""Tables in files, whatever they are written as, into DuckDB as text: every row exactly once, with its line.

CSV, tab-separated and Hive text, packed or not, and Parquet all become one temp table (file, line, columns by our
names), so that one set of rules judges them. What cannot be cut into fields comes back as a `Reject`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found, Reject
from orchestration.connectors.spool import TEXT, Spool
from orchestration.connectors.sql import file_literal, identifier, literal
from orchestration.connectors.text import (
    BLOCK_BYTES,
    blocks,
    in_parallel,
    lines_of,
    numbered_lines,
    packing,
    without_header,
)
from orchestration.errors import ApportionError

HIVE = "\x01"
DELIMITERS = (",", "\t", ";", "|", HIVE)
FORMS = {",": "CSV", HIVE: "Hive text", "\t": "tab-separated text"}
PACKED = {"": "", "gzip": "gzipped ", "zip": "zipped "}
NULLS = ["", "NULL", "null", "\\N"]
NEVER_CLOSED = "a quote is never closed"
CUT_OFF = "the last row has no line end: if the file was cut off, that row is not whole"
LONGEST_RECORD = 200
"""Lines that a quoted value may span before its open quote counts as a mistake."""


@dataclass(frozen=True)
class Layout:
    """How one file calls what its connector reads."""

    places: dict[str, int]
    """Our columns, and where the file has them, counted from 0."""
    variant: str
    """What the file is, in words: `FOCUS 1.2`."""
    unknown: tuple[str, ...] = ()
    """Columns that the vendor's documentation does not have either."""


Understand = Callable[[Delivery, Sequence[str]], Layout]
"""From a file's header to its layout; raises ApportionError if the file is something else."""
Headless = Callable[[Sequence[str]], Sequence[str] | None]
"""From the cells of a file's first line to the header that the file should have had; None: that line is its header."""


@dataclass(frozen=True)
class Loaded:
    layouts: list[Layout]
    counts: list[int]
    rejects: list[Reject]
    found: list[Found]


def by_name(required: Sequence[str], optional: Sequence[str], variant: str) -> Understand:
    """The layout of formats that have one spelling: columns by their names, in any order and any case."""

    def understand(delivery: Delivery, header: Sequence[str]) -> Layout:
        plain = [name.strip().lower() for name in header]
        places = {name: plain.index(name.lower()) for name in (*required, *optional) if name.lower() in plain}
        require(delivery, places, required, header)
        return Layout(places, variant, tuple(name for at, name in enumerate(header) if at not in places.values()))

    return understand


def unless_named(header: str | None) -> Headless:
    """Headless by a header that somebody wrote down, for files whose first line is not it.

    A value may happen to be the name of a column (a bucket called `bucket`), but not most of them.
    """
    names = [name.strip() for name in header.split(",")] if header else []
    known = {name.lower() for name in names}
    return lambda cells: names if 2 * len(known.intersection(cell.lower() for cell in cells)) < len(known) else None


def require(delivery: Delivery, places: dict[str, int], required: Sequence[str], header: Sequence[str]) -> None:
    absent = [name for name in required if name not in places]
    if absent:
        shown = ", ".join(header[:12]) + (", …" if header[12:] else "")
        raise ApportionError(
            f"{delivery.path}, line 1: missing column {', '.join(absent)} (found: {shown})",
            "deliver the file with these columns and a header line, or correct the path of the source",
        )


def load_table(
    con: DuckDBPyConnection,
    table: str,
    deliveries: Sequence[Delivery],
    columns: Sequence[str],
    understand: Understand,
    headless: Headless = lambda cells: None,
    neighbours: str | None = None,
) -> Loaded:
    """All files as text, as the temp view (file, line, `columns`, then any other columns that layouts name).

    A column that a file does not have is NULL, and so are empty cells, `NULL`, `null` and `\\N`.
    """
    files = [_opened(con, file, delivery, understand, headless) for file, delivery in enumerate(deliveries)]
    names = list(dict.fromkeys([*columns, *(name for file in files for name in file.layout.places)]))
    present = {name for file in files for name in file.layout.places}
    spool = Spool(con, table, [name for name in names if name in present], neighbours)
    for file in files:
        file.load(con, spool)
    spool.finish(names)
    return Loaded(
        [file.layout for file in files],
        [file.count for file in files],
        [reject for file in files for reject in file.rejects],
        [Found(f"{file.layout.variant}, {file.form}", file.layout.unknown, file.doubts) for file in files],
    )


def _opened(
    con: DuckDBPyConnection, file: int, delivery: Delivery, understand: Understand, headless: Headless
) -> _ParquetFile | _TextFile:
    if is_parquet(delivery):
        return _ParquetFile(con, file, delivery, understand)
    return _TextFile(file, delivery, understand, headless)


def is_parquet(delivery: Delivery) -> bool:
    with delivery.path.open("rb") as probe:
        return probe.read(4) == b"PAR1" or delivery.path.suffix == ".parquet"


def parquet_types(con: DuckDBPyConnection, delivery: Delivery) -> dict[str, str]:
    """The columns of a Parquet file and their DuckDB types."""
    try:
        found = con.execute(f"describe from read_parquet({file_literal(delivery.path)})").fetchall()
    except duckdb.Error as error:
        raise unreadable_parquet(delivery, error) from error
    return {name: kind for name, kind, *_ in found}


def unreadable_parquet(delivery: Delivery, error: Exception) -> ApportionError:
    reason = str(error).splitlines()[0]
    return ApportionError(
        f"{delivery.path}: not a readable Parquet file: {reason}", "deliver it again, or move it out of the inbox"
    )


class _ParquetFile:
    form = "Parquet"
    doubts: tuple[str, ...] = ()

    def __init__(self, con: DuckDBPyConnection, file: int, delivery: Delivery, understand: Understand) -> None:
        self._file, self._delivery = file, delivery
        self._types = parquet_types(con, delivery)
        self.layout = understand(delivery, list(self._types))
        self.count = 0
        self.rejects: list[Reject] = []

    def load(self, con: DuckDBPyConnection, spool: Spool) -> None:
        path = file_literal(self._delivery.path)
        columns = "".join(f", {self._as_text(name)} as {identifier(name)}" for name in spool.columns)
        try:
            spool.add_query(
                f"select cast({self._file} as bigint) as file, file_row_number + 1 as line{columns}"
                # Some writers do not say of text that it is text.
                f" from read_parquet({path}, file_row_number = true, binary_as_string = true)"
            )
            self.count = con.execute(f"select num_rows from parquet_file_metadata({path})").fetchall()[0][0]
        except duckdb.Error as error:
            raise unreadable_parquet(self._delivery, error) from error

    def _as_text(self, name: str) -> str:
        if name not in self.layout.places:
            return "cast(null as varchar)"
        own, kind = list(self._types.items())[self.layout.places[name]]
        value = identifier(own)
        if kind.startswith(("MAP", "STRUCT")) or kind.endswith("]"):
            value = f"to_json({value})"
        shown = f"cast({value} as varchar)"
        return f"case when {shown} not in ({', '.join(map(literal, NULLS))}) then {shown} end"


class _TextFile:
    """One delimited text file, cut into records that know their line."""

    def __init__(self, file: int, delivery: Delivery, understand: Understand, headless: Headless) -> None:
        self._file, self._delivery = file, delivery
        self._header_line, self._header_text = first_line(delivery)
        self._delimiter = max(DELIMITERS, key=lambda sign: len(_cut(self._header_text, sign)))
        # Hive's control characters never occur in values, so it does not quote them.
        self._quote = None if self._delimiter == HIVE else '"'
        header = [name.strip() for name in _cut(self._header_text, self._delimiter)]
        if given := headless(header):
            header, self._header_line, self._header_text = list(given), 0, ""
        self._width = len(header)
        self.layout = understand(delivery, header)
        self.doubts = (CUT_OFF,) if _has_no_last_line_end(delivery) else ()
        self.form = PACKED[packing(delivery.path)] + FORMS.get(self._delimiter, f"text separated by {self._delimiter}")
        self.count = 0
        self.rejects: list[Reject] = []
        self._schema = pa.schema([])

    def load(self, con: DuckDBPyConnection, spool: Spool) -> None:
        self._schema = spool.schema
        for batch in self._batches():
            spool.add(batch)

    def _batches(self) -> Iterator[pa.Table]:
        # A line with an odd number of quotes either begins a value that spans lines, or is broken. It is kept
        # back with what follows it until that is known.
        held: list[tuple[int, str]] = []
        for start, block, regular in in_parallel(self._regular, self._numbered_blocks()):
            if regular is not None and not held:
                self.count += regular.num_rows
                yield regular
                continue
            lines = lines_of(block)
            number = np.arange(start, start + len(lines))
            self._refuse_second_header(number, lines)
            odd = np.zeros(0, np.int64)
            if self._quote:
                quotes = pc.count_substring(lines, self._quote).to_numpy(zero_copy_only=False)
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

    def _numbered_blocks(self) -> Iterator[tuple[int, bytes]]:
        """What follows the header, in blocks with the number of their first line."""
        number = 1
        for block in blocks(self._delivery.path):
            begin = 0
            while number <= self._header_line and begin < len(block):
                begin = block.find(b"\n", begin) + 1 or len(block)
                number += 1
            if begin < len(block):
                rest = block[begin:]
                yield number, rest
                number += rest.count(b"\n")

    def _regular(self, start: int, block: bytes) -> pa.Table | None:
        """A block in which every line is one record of the right width, as nearly all are; None for any other."""
        if b"\r" in block or (self._header_text and self._header_text.encode() in block):
            return None
        letters = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(letters == ord("\n"))
        if self._quote:
            quotes = np.flatnonzero(letters == ord(self._quote))
            if len(quotes) % 2 or (np.searchsorted(quotes, ends) % 2).any():
                return None
        count = len(ends) + (not block.endswith(b"\n"))
        try:
            cut, wrong = self._cut(block, [], spanning=False)
        except pa.ArrowInvalid:
            return None
        if wrong or cut.num_rows != count:
            return None
        return self._as_ours(cut, np.arange(start, start + count))

    def _refuse_second_header(self, number: np.ndarray, lines: pa.Array) -> None:
        """Two files in one, or one twice: the rows after the second header may be those before it again."""
        if not self._header_text:
            return
        # The second file may bring its byte-order mark along.
        again = max(pc.index(lines, mark + self._header_text).as_py() for mark in ("", "\ufeff"))
        if again >= 0:
            raise ApportionError(
                f"{self._delivery.path}, line {number[again]}: the header of line {self._header_line} is there again,"
                " so this is more than one file",
                "deliver each file by itself, and only once",
            )

    def _spanning(self, held: list[tuple[int, str]]) -> pa.Table | None:
        """Lines that make one record only together; None when they do not."""
        text = "\n".join(line for _, line in held)
        table, wrong = self._read(f"{held[0][0]}{self._delimiter}{text}".encode(), spanning=True)
        if wrong or table.num_rows != 1:
            return None
        self.count += 1
        return table

    def _give_up(self, held: list[tuple[int, str]]) -> Iterator[pa.Table]:
        """The first line has a quote that never closes: reject it alone, and read the rest as usual."""
        number, raw = held[0]
        self.count += 1
        self.rejects.append(Reject(self._file, number, NEVER_CLOSED, raw))
        if held[1:]:
            yield from self._parse(np.array([n for n, _ in held[1:]]), pa.array([line for _, line in held[1:]]))

    def _parse(self, number: np.ndarray, lines: pa.Array) -> Iterator[pa.Table]:
        filled = pc.not_equal(lines, "")
        numbered = pc.binary_join_element_wise(
            pc.cast(pa.array(number), pa.string()).filter(filled), lines.filter(filled), self._delimiter
        )
        if not len(numbered):
            return
        self.count += len(numbered)
        yield self._rows(numbered)

    def _rows(self, numbered: pa.Array) -> pa.Table:
        """Lines that are a record each. One whose quotes are even but wrong would swallow those after it."""
        offsets = pa.array([0, len(numbered)], pa.int32())
        text = pc.binary_join(pa.ListArray.from_arrays(offsets, numbered), "\n")[0].as_buffer()
        table, wrong = self._read(text, spanning=False)
        if table.num_rows + len(wrong) < len(numbered):
            if len(numbered) > 1:
                half = len(numbered) // 2
                return pa.concat_tables([self._rows(numbered[:half]), self._rows(numbered[half:])])
            line, _, raw = numbered[0].as_py().partition(self._delimiter)
            self.rejects.append(Reject(self._file, int(line), NEVER_CLOSED, raw))
        for row in wrong:
            line, _, raw = row.text.partition(self._delimiter)
            reason = f"has {row.actual_columns - 1} fields instead of {row.expected_columns - 1}"
            self.rejects.append(Reject(self._file, int(line), reason, raw))
        return table

    def _read(self, text: pa.Buffer | bytes, *, spanning: bool) -> tuple[pa.Table, list[pacsv.InvalidRow]]:
        """Records that begin with their number."""
        try:
            cut, wrong = self._cut(text, ["line"], spanning=spanning)
        except pa.ArrowInvalid:
            return self._schema.empty_table(), []
        return self._as_ours(cut, cut.column("line")), wrong

    def _cut(
        self, text: pa.Buffer | bytes, before: list[str], *, spanning: bool
    ) -> tuple[pa.Table, list[pacsv.InvalidRow]]:
        wrong: list[pacsv.InvalidRow] = []

        def skip(row: pacsv.InvalidRow) -> str:
            wrong.append(row)
            return "skip"

        wanted = list(dict.fromkeys(f"c{place}" for place in self.layout.places.values()))
        table = pacsv.read_csv(
            pa.BufferReader(text),
            pacsv.ReadOptions(
                use_threads=False,
                block_size=2 * BLOCK_BYTES + len(text),
                column_names=[*before, *(f"c{position}" for position in range(self._width))],
            ),
            pacsv.ParseOptions(
                delimiter=self._delimiter,
                quote_char=self._quote or False,
                invalid_row_handler=skip,
                newlines_in_values=spanning,
            ),
            pacsv.ConvertOptions(
                include_columns=[*before, *wanted],
                column_types={**dict.fromkeys(before, pa.int64()), **dict.fromkeys(wanted, TEXT)},
                null_values=NULLS,
                strings_can_be_null=True,
                check_utf8=False,  # `blocks` has seen to it
            ),
        )
        return table, wrong

    def _as_ours(self, cut: pa.Table, number: np.ndarray | pa.ChunkedArray) -> pa.Table:
        places = self.layout.places
        columns = [
            np.full(cut.num_rows, self._file),
            number,
            *(
                cut.column(f"c{places[name]}") if name in places else pa.nulls(cut.num_rows, TEXT)
                for name in self._schema.names[2:]
            ),
        ]
        return pa.table(columns, schema=self._schema)


def first_line(delivery: Delivery) -> tuple[int, str]:
    """The number and the text of the first line that is not empty."""
    for start, lines in numbered_lines(delivery.path):
        for place, line in enumerate(lines):
            text = line.as_py()
            if text.strip():
                return start + place, text
    raise without_header(delivery)


def _has_no_last_line_end(delivery: Delivery) -> bool:
    """Of a packed file, its checksum tells."""
    with delivery.path.open("rb") as raw:
        raw.seek(max(delivery.size - 2, 0))
        return not packing(delivery.path) and b"\n" not in raw.read(2)


def _cut(header: str, delimiter: str) -> list[str]:
    if delimiter == HIVE:
        return header.split(delimiter)
    return next(csv.reader([header], delimiter=delimiter), [])
