"""Files of Slurm, text or JSON, as one temp table of cells under the names that sacct prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found, Reject
from orchestration.connectors.scheduler.slurm_json import Record, is_json, read_document
from orchestration.connectors.scheduler.slurm_text import Asked, Cut, Layout, layout_of
from orchestration.connectors.text import FLUSH_ROWS, Sink
from orchestration.errors import ApportionError


@dataclass(frozen=True)
class Shape:
    """How the JSON of a command is read."""

    key: str
    """The document's list of records."""
    columns: Callable[[Record], dict[str, str | None]]
    """From a record to the cells that the command would have printed; ValueError: what is wrong with it."""


@dataclass
class LoadedFile:
    variant: str
    layout: Layout | None
    """None: JSON, which has all columns."""
    count: int = 0
    rejects: list[Reject] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    @property
    def unknown(self) -> tuple[str, ...]:
        return self.layout.unknown if self.layout else ()

    def found(self, times: str | None = None) -> Found:
        return Found(", ".join(filter(None, [self.variant, times])), self.unknown, tuple(self.doubts))

    def has(self, *names: str) -> bool:
        """Whether the file has one of these columns."""
        return self.layout is None or any(self.layout.has(name) for name in names)

    def require(self, delivery: Delivery, needed: Sequence[Sequence[str]]) -> None:
        """Of each group of columns, the file needs one."""
        absent = [" or ".join(names) for names in needed if not self.has(*names)]
        if absent:
            line = f", line {self.layout.line}" if self.layout and self.layout.line else ""
            raise ApportionError(
                f"{delivery.path}{line}: missing column {', '.join(absent)}",
                "print these columns too; docs/sources-slurm.md has the commands",
            )


def load_cells(
    con: DuckDBPyConnection,
    table: str,
    deliveries: Sequence[Delivery],
    columns: Sequence[str],
    asked: Asked,
    shape: Shape | None = None,
) -> list[LoadedFile]:
    """All files as text into the temp table (file, line, `columns`); what a file does not have is NULL."""
    schema = pa.schema([("file", pa.int64()), ("line", pa.int64()), *((name, pa.string()) for name in columns)])
    sink = Sink(con, table, schema)
    files = []
    for file, delivery in enumerate(deliveries):
        if is_json(delivery):
            files.append(_load_json(sink, file, delivery, asked, shape))
        else:
            files.append(_load_text(sink, file, delivery, asked))
    sink.flush()
    return files


def _load_text(sink: Sink, file: int, delivery: Delivery, asked: Asked) -> LoadedFile:
    layout = layout_of(delivery, asked)
    cut = Cut(file, delivery, asked, layout)
    for batch in cut.batches(sink.schema):
        sink.add(batch)
    found = LoadedFile(f"{asked.what}, {layout}", layout, cut.count, cut.rejects)
    if cut.repaired:
        found.doubts.append(
            f"{cut.repaired} records have the delimiter or a line break in their free text and were cut by the shape of"
            " their cells; a delimiter such as 0x1f avoids that"
        )
    return found


def _load_json(sink: Sink, file: int, delivery: Delivery, asked: Asked, shape: Shape | None) -> LoadedFile:
    if shape is None:
        raise ApportionError(f"{delivery.path}: JSON instead of {asked.what}", "print it as text, with -P")
    found = LoadedFile("", None)
    rows: list[dict[str, object]] = []

    def take(line: int, record: Record) -> None:
        found.count += 1
        try:
            rows.append({"file": file, "line": line, **shape.columns(record)})
        except ValueError as error:
            found.rejects.append(Reject(file, line, str(error), str(record)[:1000]))
        if len(rows) == FLUSH_ROWS:
            sink.add(pa.Table.from_pylist(rows, sink.schema))
            rows.clear()

    found.variant = f"Slurm JSON, {read_document(delivery, shape.key, take) or 'of an unknown version'}"
    sink.add(pa.Table.from_pylist(rows, sink.schema))
    return found
