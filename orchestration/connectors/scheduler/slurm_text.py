"""What sacct and sacctmgr print with -P or -p, cut into columns: any delimiter, any list of columns, with a header or
without one.

Lines with the right number of cells are cut by Arrow, all at once. Only the others are looked at one by one: they are
records whose free text holds a line break or the delimiter, or they are broken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orchestration.connectors.base import Delivery, Reject
from orchestration.connectors.scheduler.slurm_columns import (
    COMMA,
    Column,
    begins_record,
    column,
    fit,
    guarded,
    is_known,
    letters,
    misspelled,
    place_of,
    unguarded,
)
from orchestration.connectors.tables import LONGEST_RECORD
from orchestration.connectors.text import numbered_lines, without_header
from orchestration.errors import ApportionError

COMMON_DELIMITERS = ("|", "\x1f", "|#", "\t", ";", ",", "^", "~", "\x01")
SHOWN = {"\x1f": "0x1f", "\t": "tab", "\x01": "0x01"}
SAMPLE = 200
"""Lines from which the delimiter of a file without a header is told."""
_GAP = re.compile(r"(?<=[A-Za-z0-9])[^A-Za-z0-9]+(?=[A-Za-z])")
_RULER = re.compile(r"-+( +-+)+ *")

Cells = Callable[[int], pa.Array]
"""The cells of one column, by its place."""


@dataclass(frozen=True)
class Asked:
    """What a connector wants of a file, and what its source says about it."""

    what: str
    """The command, for messages: `sacct text`."""
    told_by: tuple[str, ...]
    """Names of which a header has at least one, beside others that Slurm prints."""
    delimiter: str | None = None
    columns: tuple[str, ...] = ()
    """Those of files without a header; empty: there should be no such files."""


@dataclass(frozen=True)
class Layout:
    """How one file is written."""

    delimiter: str
    header: tuple[Column, ...]
    line: int = 0
    """Of the header; 0: there is none."""
    text: str | None = None
    has_last_delimiter: bool = False
    """sacct -p ends each line with the delimiter, which is no cell more."""

    @property
    def width(self) -> int:
        return len(self.header)

    @property
    def cells(self) -> int:
        """How many the delimiter cuts a record into."""
        return self.width + self.has_last_delimiter

    def is_whole(self, text: str) -> bool:
        return text.count(self.delimiter) + 1 == self.cells

    @property
    def unknown(self) -> tuple[str, ...]:
        names = self.text.split(self.delimiter) if self.text else ()
        return tuple(name.strip() for name in names if name.strip() and not is_known(name))

    @property
    def begins_free(self) -> bool:
        return self.header[0].is_free

    @property
    def ends_free(self) -> bool:
        return self.header[-1].is_free

    def has(self, name: str) -> bool:
        return place_of(name, self.header) is not None

    def pieces(self, text: str) -> list[str]:
        return text.removesuffix(self.delimiter if self.has_last_delimiter else "").split(self.delimiter)

    def __str__(self) -> str:
        head = "" if self.line else " without header"
        return f"{self.width} columns{head}, separated by {SHOWN.get(self.delimiter, self.delimiter)}"


def layout_of(delivery: Delivery, asked: Asked) -> Layout:
    """Finds out how a file is written, from its first lines and from what the source says."""
    sample = list(islice(_filled_lines(delivery), SAMPLE))
    if not sample:
        raise without_header(delivery)
    line, first = sample[0]
    if len(sample) > 1 and _RULER.fullmatch(sample[1][1]):
        raise ApportionError(
            f"{delivery.path}, line {sample[1][0]}: columns of fixed width, which cut off what does not fit",
            "print with -P, which separates whole values by a delimiter",
        )
    delimiter = asked.delimiter or _delimiter_of_header(first)
    first = guarded(first, delimiter or "")
    names = first.removesuffix(delimiter).split(delimiter) if delimiter else []
    if delimiter and _is_header(names, asked):
        _refuse_misspelled(delivery, line, names, delimiter)
        return Layout(delimiter, _columns(names), line, first, first.endswith(delimiter))
    if not asked.columns:
        raise ApportionError(
            f"{delivery.path}, line {line}: not the header line of {asked.what}: {first[:80]}",
            "print it with its header (without -n), or list the columns of files without one under 'columns'"
            if asked.what.startswith("sacct ")
            else "print it with its header (without -n)",
        )
    return _layout_without_header(delivery, sample, asked)


def _filled_lines(delivery: Delivery) -> Iterator[tuple[int, str]]:
    for start, lines in numbered_lines(delivery.path):
        for number, text in enumerate(lines[:SAMPLE].to_pylist(), start=start):
            if text.strip():
                yield number, text


def _delimiter_of_header(text: str) -> str | None:
    """What stands between the names; single spaces are parts of names such as `Cluster Nodes`."""
    gaps = Counter(gap for gap in _GAP.findall(text) if gap != " ")
    most = gaps.most_common(1)[0][0] if gaps else None
    return "," if most == '","' else most


def _is_header(names: Sequence[str], asked: Asked) -> bool:
    told = {letters(name) for name in asked.told_by}
    return any(letters(name) in told for name in names) and sum(is_known(name) for name in names) > 1


def _columns(names: Sequence[str]) -> tuple[Column, ...]:
    return tuple(column(name) for name in names)


def _refuse_misspelled(delivery: Delivery, line: int, names: Sequence[str], delimiter: str) -> None:
    """A damaged name would quietly be a column less, and another one might stand in for it."""
    for name in names:
        if not is_known(name) and (meant := misspelled(name, delimiter)):
            raise ApportionError(
                f"{delivery.path}, line {line}: there is no column {name.strip()}; did it say {meant}?",
                "the file is damaged or was edited: print it again",
            )


def _layout_without_header(delivery: Delivery, sample: Sequence[tuple[int, str]], asked: Asked) -> Layout:
    width = len(asked.columns)
    candidates = [asked.delimiter] if asked.delimiter else COMMON_DELIMITERS

    def fitting(delimiter: str, more: int) -> int:
        return sum(guarded(text, delimiter).count(delimiter) + 1 == width + more for _, text in sample)

    ways = [(sign, more) for sign in candidates for more in (0, 1)]
    # Where `|` and `|#` cut equally well, the longer one leaves nothing of itself in the cells.
    delimiter, more = max(ways, key=lambda way: (fitting(*way), len(way[0])))
    if 2 * fitting(delimiter, more) < len(sample):
        line, text = sample[0]
        likely = max(candidates, key=text.count)
        raise ApportionError(
            f"{delivery.path}, line {line}: has {text.count(likely) + 1} cells separated by"
            f" {SHOWN.get(likely, likely)}, but 'columns' lists {width}",
            "correct 'columns' (and 'delimiter', if the file has an unusual one), or print the file with its header",
        )
    return Layout(delimiter, _columns(asked.columns), has_last_delimiter=more == 1)


@dataclass
class Cut:
    """One file being cut into records. What it counts is complete once its batches are read."""

    file: int
    delivery: Delivery
    asked: Asked
    layout: Layout
    count: int = 0
    repaired: int = 0
    """Records that could only be cut by the shape of their cells."""
    rejects: list[Reject] = field(default_factory=list)

    def batches(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """The records with the columns of the schema after `file` and `line`; empty cells are null."""
        places = [place_of(name, self.layout.header) for name in schema.names[2:]]
        for numbers, cells in self._records():
            texts = [pa.nulls(len(numbers), pa.string()) if at is None else self._cells(cells(at)) for at in places]
            yield pa.table([np.full(len(numbers), self.file), numbers, *texts], schema=schema)

    def _cells(self, texts: pa.Array) -> pa.Array:
        bare = _trimmed(texts)
        return pc.replace_substring(bare, COMMA, ",") if self.layout.delimiter == "," else bare

    def _records(self) -> Iterator[tuple[np.ndarray, Cells]]:
        kept = _Lines(np.zeros(0, np.int64), pa.array([], pa.string()))
        for start, texts in numbered_lines(self.delivery.path):
            if self.layout.delimiter == ",":
                texts = pa.array([guarded(text, ",") for text in texts.to_pylist()], pa.string())
            lines = _Lines(np.arange(start, start + len(texts)), texts)
            lines = self._without_headers(lines[max(0, self.layout.line + 1 - start) :])
            kept = yield from self._cut(kept.plus(lines), is_last=False)
        yield from self._cut(kept, is_last=True)

    def _without_headers(self, lines: _Lines) -> _Lines:
        """Dumps that were put together repeat their header; with other columns, nobody knows what follows it."""
        if self.layout.text is None:
            return lines
        again = pc.equal(lines.texts, self.layout.text).to_numpy(zero_copy_only=False)
        told_by = "|".join(re.escape(name) for name in self.asked.told_by)
        similar = pc.match_substring_regex(lines.texts, f"(?i){told_by}").to_numpy(zero_copy_only=False)
        for number, text in lines.at(np.flatnonzero(similar & ~again)):
            if _is_header(text.split(self.layout.delimiter), self.asked):
                raise ApportionError(
                    f"{self.delivery.path}, line {number}: a second header, with other columns than that of line"
                    f" {self.layout.line}",
                    "deliver each dump as a file of its own",
                )
        return lines.at(np.flatnonzero(~again)) if again.any() else lines

    def _cut(self, lines: _Lines, *, is_last: bool) -> Iterator[tuple[np.ndarray, Cells]]:
        """Gives out records, and returns the lines that may go on in the next block."""
        cells = pc.count_substring(lines.texts, self.layout.delimiter).to_numpy(zero_copy_only=False) + 1
        odd = np.flatnonzero(cells != self.layout.cells)
        runs = np.split(odd, np.flatnonzero(np.diff(odd) > 1) + 1) if len(odd) else []
        begin = 0
        for at, end in [*((int(run[0]), int(run[-1]) + 1) for run in runs), (len(lines), len(lines))]:
            # The last cell of the record before an odd line may go on there, or in the next block, and the first cell
            # of the record after it may have begun there.
            certain = max(begin, at - 1) if self.layout.ends_free else at
            yield from self._give(lines[begin:certain])
            if end == len(lines) and not is_last and end - certain <= LONGEST_RECORD:
                return lines[certain:]
            begin = min(end + self.layout.begins_free, len(lines))
            yield from self._resolve(list(lines[certain:begin]), first_is_whole=certain < at)
        return lines[begin:]

    def _give(self, lines: _Lines) -> Iterator[tuple[np.ndarray, Cells]]:
        if len(lines):
            self.count += len(lines)
            split = pc.split_pattern(lines.texts, self.layout.delimiter)
            yield lines.numbers, lambda place: pc.list_element(split, place)

    def _resolve(self, lines: list[tuple[int, str]], *, first_is_whole: bool) -> Iterator[tuple[np.ndarray, Cells]]:
        """Lines with too few or too many cells: records that span several lines, or broken ones."""
        layout = self.layout
        found: list[tuple[int, list[str | None]]] = []
        follows_stray = False
        while lines:
            number, text = lines[0]
            length, cells = self._record_at(lines, first_is_whole)
            if cells is not None:
                found.append((number, cells))
                self.repaired += length > 1 or not layout.is_whole(text)
                if follows_stray and layout.begins_free:
                    cells[0] = None
                follows_stray = False
            elif text.strip():
                is_stray = not begins_record(layout.pieces(text), layout.header)
                if found and is_stray and not follows_stray and layout.ends_free:
                    found[-1][1][-1] = None
                follows_stray |= is_stray
                reason = f"has {text.count(layout.delimiter) + 1} fields instead of {layout.cells}"
                self.rejects.append(Reject(self.file, number, reason, unguarded(text)))
                self.count += 1
            lines, first_is_whole = lines[length:], False
        if found:
            self.count += len(found)
            rows = [cells for _, cells in found]
            yield (
                np.array([number for number, _ in found]),
                lambda place: pa.array([cells[place] for cells in rows], pa.string()),
            )

    def _record_at(self, lines: list[tuple[int, str]], is_whole: bool) -> tuple[int, list[str | None] | None]:
        """How many lines the record at the beginning spans, and its cells; one line and no cells if it is broken."""
        layout, text = self.layout, lines[0][1]
        # With as many cells as there should be, of whatever shape, the rules for single cells say what is wrong.
        best: tuple[int, list[str | None] | None] = (1, list(layout.pieces(text)) if is_whole else self._fitted(text))
        # A line between two records belongs to neither for certain if one ends and the other begins with free text.
        is_torn = layout.begins_free and layout.ends_free
        may_begin = begins_record(layout.pieces(text), layout.header) or (layout.begins_free and not is_torn)
        if best[1] is None and not may_begin:
            return best
        for length, (_, more) in enumerate(lines[1:LONGEST_RECORD], start=2):
            if begins_record(layout.pieces(more), layout.header):
                break
            # What follows a complete record can only be more of its last cell.
            if best[1] and (is_torn or not layout.ends_free or layout.delimiter in more):
                break
            text = f"{text}\n{more}"
            if more.strip() and (cells := self._fitted(text)):
                best = (length, cells)
        return best

    def _fitted(self, text: str) -> list[str | None] | None:
        layout = self.layout
        if layout.has_last_delimiter and not text.endswith(layout.delimiter):
            return None
        return fit(layout.pieces(text), layout.delimiter, layout.header)


@dataclass(frozen=True)
class _Lines:
    """Lines with their numbers, to be cut like a list."""

    numbers: np.ndarray
    texts: pa.Array

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, part: slice) -> _Lines:
        return _Lines(self.numbers[part], self.texts[part])

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return zip(self.numbers.tolist(), self.texts.to_pylist(), strict=True)

    def at(self, places: np.ndarray) -> _Lines:
        return _Lines(self.numbers[places], self.texts.take(pa.array(places)))

    def plus(self, more: _Lines) -> _Lines:
        if not len(self):
            return more
        return _Lines(np.concatenate([self.numbers, more.numbers]), pa.concat_arrays([self.texts, more.texts]))


def _trimmed(cells: pa.Array) -> pa.Array:
    bare = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)
