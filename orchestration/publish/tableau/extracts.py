"""Extracts for Tableau: the reporting tables and the closed invoice lines as `.hyper` files, and one data source.

Everything is read from the published marts. A table goes from DuckDB to Hyper as Parquet, money as `numeric(18, 9)`,
which is exact below a billion per row. A column with a larger value is stored in 128 bits, which Tableau reads from
2022.4 on; nothing is ever rounded. Row count and sums of a file are compared with the marts before it takes its place.

A table whose content is what its file already holds is left alone: Hyper never writes the same bytes twice, and a file
that stays the same need not be uploaded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from orchestration.errors import ApportionError
from orchestration.publish.tableau import costs, datasource, hyper
from orchestration.workspace import Workspace

CLOSED = ("core", "fct_invoice_lines")
"""What finance has closed: no report, but what Tableau's readers ask for first."""
KNOWN = ".extracts.json"
"""Of each file, the hash of the content that it was made of."""
LAYOUT = "1"
"""Of the files. What an older version of this code wrote is written again."""
PLAIN = {"VARCHAR", "DATE", "TIMESTAMP", "BOOLEAN", "BIGINT", "DOUBLE"}
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
WIDE_DIGITS = 38


@dataclass(frozen=True)
class Extracts:
    folder: Path
    datasource: Path
    tables: dict[str, Path]
    """The `.hyper` file of each table."""
    rows: dict[str, int]
    written: tuple[str, ...]
    """Tables whose file is new; the others held the same already."""
    wide: tuple[str, ...]
    """Columns, as `table.column`, with a value of a billion or more: Tableau reads them from 2022.4 on."""

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.datasource, *self.tables.values()))


@dataclass(frozen=True)
class Table:
    """A table on its way: what it is made of, and what Hyper must find again."""

    name: str
    columns: dict[str, str]
    sql: str
    content: str
    rows: int
    sums: dict[str, object]

    @property
    def wide(self) -> tuple[str, ...]:
        return tuple(column for column, kind in self.columns.items() if kind.startswith(f"DECIMAL({WIDE_DIGITS},"))


def write_extracts(workspace: Workspace) -> Extracts:
    """Brings `published/tableau/` up to what the published marts hold. The caller holds the writer's lock."""
    marts = workspace.published / "marts.duckdb"
    if not marts.exists():
        raise ApportionError("there is nothing published yet", "run `apportion run --from … --to …` first")
    folder = workspace.published / "tableau"
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.glob(".building-*"):
        shutil.rmtree(leftover)
    known = _known(folder)

    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as building:
        beside = Path(building)
        with duckdb.connect(str(marts), read_only=True) as connection:
            connection.execute(f"set temp_directory = '{_quoted(beside)}'")
            tables = [_examined(connection, *table) for table in _tables(connection)]
            descriptions = _descriptions(connection)
            files = {table.name: folder / f"{table.name}.hyper" for table in tables}
            written = [t for t in tables if known.get(t.name) != t.content or not files[t.name].exists()]
            for wide in (False, True):
                _write(connection, [table for table in written if bool(table.wide) is wide], beside, wide)
        for table in written:
            # Forgotten first: a file is never remembered as holding what it does not.
            known.pop(table.name, None)
            _remember(folder, known)
            (beside / files[table.name].name).replace(files[table.name])
            known[table.name] = table.content
            _remember(folder, known)

        main = next(table for table in tables if table.name == costs.TABLE)
        target = folder / f"{datasource.NAME}.tdsx"
        description = datasource.tds(main.columns, descriptions)
        content = _hash([description, main.content.encode()])
        if known.get(target.name) != content or main in written or not target.exists():
            datasource.package(beside / target.name, description, files[main.name])
            (beside / target.name).replace(target)
        kept = {table.name: table.content for table in tables} | {target.name: content}
        _remember(folder, kept)

    for file in folder.glob("*.hyper"):
        if file.stem not in files:
            file.unlink()
    return Extracts(
        folder,
        target,
        files,
        {table.name: table.rows for table in tables},
        tuple(table.name for table in written),
        tuple(f"{table.name}.{column}" for table in tables for column in table.wide),
    )


def _tables(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, str]]:
    """Name, relation and order of each table."""
    marts = connection.execute("select schema_name, table_name from duckdb_tables() order by 1, 2").fetchall()
    chosen = [(s, t) for s, t in marts if (s == "reporting" and t.startswith("rpt_")) or (s, t) == CLOSED]
    (with_billing_mode,) = connection.execute(
        "select count(*) > 0 from duckdb_columns() where table_name = 'fct_team_days' and column_name = 'billing_mode'"
    ).fetchone()
    connection.execute(f"create temp table {costs.TABLE} as {costs.costs_sql(with_billing_mode)}")
    untied = connection.execute(costs.UNTIED).fetchall()
    if untied:
        raise RuntimeError(f"the costs for Tableau are not those of the marts: {untied}")
    return [
        (costs.TABLE, f"temp.{costs.TABLE}", f"order by {', '.join(costs.KEY)}"),
        *((table, f"{schema}.{table}", "") for schema, table in chosen),
    ]


def _examined(connection: duckdb.DuckDBPyConnection, name: str, relation: str, order: str) -> Table:
    """What the table holds, in types that Tableau knows, and a hash of it that the order of rows does not change."""
    columns = _types(connection, relation)
    cast = ", ".join(f'cast("{column}" as {kind}) as "{column}"' for column, kind in columns.items())
    rows_sql = f"select {cast} from {relation}"
    numbers = [column for column, kind in columns.items() if kind == "BIGINT" or kind.startswith("DECIMAL")]
    sums = "".join(f', sum("{column}")' for column in numbers)
    rows, *values = connection.execute(f"select count(*){sums} from {relation}").fetchone()
    mixed = connection.execute(f"select sum(hash(row_)), bit_xor(hash(row_)) from ({rows_sql}) as row_").fetchone()
    content = _hash([str((columns, rows, mixed)).encode()])
    return Table(name, columns, f"{rows_sql} {order}", content, rows, dict(zip(numbers, values, strict=True)))


def _types(connection: duckdb.DuckDBPyConnection, relation: str) -> dict[str, str]:
    """Of each column the narrowest exact type that Tableau reads. What it has no type for becomes text."""
    found = {column: kind for column, kind, *_ in connection.execute(f"describe {relation}").fetchall()}
    decimals = [column for column, kind in found.items() if kind.startswith("DECIMAL")]
    largest = dict.fromkeys(decimals)
    if decimals:
        maxima = ", ".join(f'max(abs("{column}"))' for column in decimals)
        values = connection.execute(f"select {maxima} from {relation}").fetchone()
        largest = dict(zip(decimals, values, strict=True))

    def chosen(column: str, kind: str) -> str:
        if kind in PLAIN:
            return kind
        if kind in INTEGERS:
            return "BIGINT"
        if kind not in ("HUGEINT", "UBIGINT") and column not in largest:
            return "TIMESTAMP" if kind.startswith("TIMESTAMP") else "VARCHAR"
        scale = int(kind.rstrip(")").rpartition(",")[2]) if column in largest else 0
        fits = column in largest and (largest[column] or 0) < 10 ** (hyper.NARROW_DIGITS - scale)
        return f"DECIMAL({hyper.NARROW_DIGITS if fits else WIDE_DIGITS},{scale})"

    return {column: chosen(column, kind) for column, kind in found.items()}


def _write(connection: duckdb.DuckDBPyConnection, tables: list[Table], beside: Path, wide: bool) -> None:
    if not tables:
        return
    with hyper.engine(beside, wide) as process:
        for table in tables:
            file, parquet = beside / f"{table.name}.hyper", beside / f"{table.name}.parquet"
            connection.execute(f"copy ({table.sql}) to '{_quoted(parquet)}' (format parquet)")
            hyper.write_table(process, file, table.name, parquet)
            shutil.copymode(parquet, file)  # Hyper's own would keep everybody else from reading it
            parquet.unlink()
            found = hyper.totals(process, file, table.name, tuple(table.sums))
            expected = (table.rows, *table.sums.values())
            if found != expected:
                raise RuntimeError(f"the extract of {table.name} is not the mart: {found} instead of {expected}")


def _descriptions(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], str]:
    rows = connection.execute(
        "select table_name, column_name, comment from duckdb_columns() where comment is not null"
    ).fetchall()
    return {(table, column): comment for table, column, comment in rows}


def _known(folder: Path) -> dict[str, str]:
    try:
        known = json.loads((folder / KNOWN).read_text(encoding="utf-8"))
        return known["contents"] if known["layout"] == LAYOUT else {}
    except (OSError, ValueError, KeyError):  # everything is written anew then
        return {}


def _remember(folder: Path, contents: dict[str, str]) -> None:
    beside = folder / f"{KNOWN}.tmp-{os.getpid()}"
    known = {"layout": LAYOUT, "contents": contents}
    beside.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    beside.replace(folder / KNOWN)


def _hash(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
