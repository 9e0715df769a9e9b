"""Tableau's Hyper engine, as far as extracts need it: a process, a file, a table filled from Parquet, its sums.

The engine reads Parquet itself, so no row passes through Python. It is a binary that exists for the usual platforms
only, so it is imported when an extract is asked for and not before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from orchestration.errors import ApportionError

if TYPE_CHECKING:
    from tableauhyperapi import HyperProcess

SCHEMA = "Extract"
"""Where Tableau itself puts the tables of an extract."""

NARROW_DIGITS = 18
"""Up to here Hyper stores a number in 64 bits, which every Tableau reads."""
NARROW_VERSION, WIDE_VERSION = "2", "3"
"""Formats of the file: all supported Tableau versions read the first, 128-bit numbers need the second (2022.4)."""


@contextmanager
def engine(logs: Path, wide: bool) -> Iterator[HyperProcess]:
    """Hyper without a word to the outside, its log in a folder of ours instead of the working directory."""
    try:
        from tableauhyperapi import HyperProcess, Telemetry
    except (ImportError, OSError) as error:
        raise ApportionError(
            f"Tableau's Hyper API cannot be loaded on this machine ({error})",
            "extracts can be written on Linux, macOS and Windows with 64-bit processors: `pip install tableauhyperapi`",
        ) from None
    with HyperProcess(
        telemetry=Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU,
        parameters={
            "log_dir": str(logs),
            "default_database_version": WIDE_VERSION if wide else NARROW_VERSION,
        },
    ) as process:
        yield process


def write_table(process: HyperProcess, file: Path, table: str, parquet: Path) -> None:
    """A new file with one table that holds what the Parquet file holds."""
    from tableauhyperapi import Connection, CreateMode, TableName, escape_string_literal

    with Connection(process.endpoint, str(file), CreateMode.CREATE_AND_REPLACE) as connection:
        connection.catalog.create_schema(SCHEMA)
        connection.execute_command(
            f"create table {TableName(SCHEMA, table)} as"
            f" select * from external({escape_string_literal(str(parquet))}, format => 'parquet')"
        )


def totals(process: HyperProcess, file: Path, table: str, columns: Sequence[str]) -> tuple[Decimal | int | None, ...]:
    """The number of rows and the sum of each column, as Hyper sees them."""
    from tableauhyperapi import Connection, TableName, escape_name

    sums = "".join(f", sum({escape_name(column)})" for column in columns)
    with Connection(process.endpoint, str(file)) as connection:
        (row,) = connection.execute_list_query(f"select count(*){sums} from {TableName(SCHEMA, table)}")
    return tuple(row)
