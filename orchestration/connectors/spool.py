"""Text on its way into SQL: Parquet files beside what the session spills, and a view on them.

A temp table would do the same, but DuckDB looks for the best compression of everything that is inserted into one, which
takes longer than cutting the text; and it would have to fit into memory or be spilled. Parquet's dictionaries are
made in a tenth of the time, and SQL that follows works on their distinct values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from duckdb import DuckDBPyConnection

from orchestration.connectors.sql import file_literal, identifier, literal

FLUSH_ROWS = 50_000
TEXT = pa.dictionary(pa.int32(), pa.string())
"""Most cells of a table repeat one above them. As numbers of distinct texts they need less memory, and are sorted and
written in less time; cutting them takes about as much more."""
_numbers = itertools.count()


def new_spool_file(con: DuckDBPyConnection, name: str) -> Path:
    """A path in the folder that goes away with the session.

    A new one each time: the database may remember what was in a file of the same name.
    """
    ((folder,),) = con.execute("select current_setting('temp_directory')").fetchall()
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{name}-{next(_numbers)}.parquet"


class Spool:
    """The rows (file, line, some columns of text) of many files, to be read as the view `name` once it is finished.

    Rows with the same value of the column `neighbours` are put beside each other, a piece of the file at a time: what
    is asked for by day later is then in a few places and not everywhere.
    """

    def __init__(
        self, con: DuckDBPyConnection, name: str, columns: Sequence[str], neighbours: str | None = None
    ) -> None:
        self._con, self._name, self._rows = con, name, 0
        self.columns = list(columns)
        self.schema = pa.schema([("file", pa.int64()), ("line", pa.int64()), *((n, TEXT) for n in columns)])
        self._paths = [new_spool_file(con, name)]
        for old in self._paths[0].parent.glob(f"{name}-*.parquet"):
            old.unlink()
        self._writer = pq.ParquetWriter(
            self._paths[0], self.schema, compression="lz4", use_dictionary=self.columns, write_statistics=False
        )
        self._batches: list[pa.Table] = []
        # Sorting and encoding happen beside the cutting of what follows; one piece at a time, to keep memory small.
        self._pool = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._neighbours = neighbours if neighbours in self.columns else None

    def add(self, batch: pa.Table) -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows
        if self._rows >= FLUSH_ROWS:
            self._flush()

    def add_query(self, select: str) -> None:
        """The rows of a SELECT, which has our columns in our order."""
        self._paths.append(new_spool_file(self._con, self._name))
        self._con.execute(f"copy ({select}) to {literal(str(self._paths[-1]))} (format parquet, compression lz4_raw)")

    def finish(self, all_columns: Sequence[str]) -> None:
        """Creates the view, in which those of `all_columns` that nobody has are null."""
        self._flush()
        self._flush()  # and waits for the last piece
        self._pool.shutdown()
        self._writer.close()
        shown = [
            identifier(name) if name in self.columns else f"cast(null as varchar) as {identifier(name)}"
            for name in all_columns
        ]
        files = ", ".join(map(file_literal, self._paths))
        self._con.execute(
            f"create or replace temp view {self._name} as select {', '.join(['file', 'line', *shown])}"
            f" from read_parquet([{files}], hive_partitioning = false)"
        )

    def _flush(self) -> None:
        if self._writing:
            self._writing.result()
            self._writing = None
        if self._batches:
            self._writing = self._pool.submit(self._write, self._batches)
            self._batches, self._rows = [], 0

    def _write(self, batches: list[pa.Table]) -> None:
        rows = pa.concat_tables(batches).unify_dictionaries()
        if self._neighbours:
            rows = rows.take(pc.sort_indices(rows[self._neighbours].cast(pa.string())))
        self._writer.write_table(rows)
