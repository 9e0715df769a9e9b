"""Small pieces of SQL that every connector needs, so that they all judge a value in the same way."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pyarrow as pa
from duckdb import DuckDBPyConnection

NO_COMMITMENT_TERMS = """
    cast(null as decimal(38, 9)) as commitment_quantity,
    cast(null as timestamptz) as commitment_start_at,
    cast(null as timestamptz) as commitment_end_at"""
"""For bills that do not say what a commitment covers, or that need not, because they say what it cost whom."""


def literal(text: str) -> str:
    """A string as SQL text."""
    return "'" + text.replace("'", "''") + "'"


def constant(*values: str, choice: str | None = None) -> str:
    """Text that is the same on millions of rows: as an enumeration it is written a sixth faster.

    In the file it is plain text all the same. With several values, `choice` is SQL that gives one of them.
    """
    names = ", ".join(map(literal, values))
    return f"cast({choice or literal(values[0])} as enum({names}))"


def file_literal(path: Path) -> str:
    """A path as SQL text for readers, which would take brackets in it for a pattern."""
    return literal(glob.escape(str(path)))


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def money(column: str) -> str:
    """Text to money, with more digits than are kept: landing rounds each line and keeps account of what that leaves.

    A billion billions is no amount of a bill line, and sums of such lines would not fit.
    """
    return f"cast(try_cast({column} as decimal(36, 18)) as decimal(38, 18))"


def utc(column: str) -> str:
    """Text to an instant. The session's zone is UTC, so a text without a zone is UTC."""
    return _plausible(f"try_cast({column} as timestamptz)", "timestamptz")


def day(column: str) -> str:
    """Text to a UTC day."""
    return _plausible(f"try_cast({column} as date)", "date")


def _plausible(value: str, kind: str) -> str:
    """Infinity and the year 290000 are valid to the database and to nobody else."""
    return f"(case when {value} >= {kind} '1970-01-01' and {value} < {kind} '9999-01-01' then {value} end)"


def whole(column: str) -> str:
    """Text to a whole number; 3.7 is not rounded to 4 behind anybody's back."""
    digits = r"'[+-]?[0-9]+(\.0*)?'"
    return f"(case when regexp_full_match(trim({column}), {digits}) then try_cast({column} as bigint) end)"


def thousandths(column: str) -> str:
    """A decimal text times 1,000 as a whole number, rounded half away from zero."""
    return f"cast(round(try_cast({column} as decimal(28, 9)) * 1000) as bigint)"


def minutes_ms(column: str) -> str:
    """A positive number of minutes as milliseconds; any other text says nothing."""
    value = f"cast(round(try_cast({column} as decimal(18, 6)) * 60000) as bigint)"
    return f"(case when {value} > 0 then {value} end)"


def first_reason(*cases: tuple[str, str]) -> str:
    """The reason of the first condition that holds, as SQL; reasons are SQL expressions too."""
    body = " ".join(f"when {condition} then {reason}" for condition, reason in cases)
    return f"case {body} end" if cases else "cast(null as varchar)"


def missing(column: str, name: str) -> tuple[str, str]:
    return f"{column} is null", literal(f"{name} is missing")


def unreadable(column: str, parsed: str, name: str, what: str) -> tuple[str, str]:
    """A value that is there but is not what it should be."""
    return (
        f"{column} is not null and {parsed} is null",
        f"{literal(f'{name} is not {what}: ')} || {column}",
    )


def backwards(start: str, end: str) -> tuple[str, str]:
    return f"{end} < {start}", literal("ends before it starts")


def quoted(names: Iterable[str]) -> str:
    return ", ".join(literal(name) for name in names)


def map_distinct(
    con: DuckDBPyConnection,
    table: str,
    query: str,
    columns: Sequence[tuple[str, pa.DataType]],
    parse: Callable[[str], Sequence[object]],
) -> None:
    """Parse each distinct text of `query` once in Python, into the temp table `table` keyed by `text`.

    For notations that SQL cannot read (node lists, TRES, Kubernetes quantities) but that repeat endlessly. A
    ValueError of `parse` becomes the row's `reason`.
    """
    results: list[list[object]] = [[] for _ in range(len(columns) + 2)]
    for (text,) in con.execute(query).fetchall():
        try:
            values, reason = list(parse(text)), None
        except ValueError as error:
            values, reason = [None] * len(columns), str(error)
        for column, value in zip(results, [text, *values, reason], strict=True):
            column.append(value)
    schema = pa.schema([("text", pa.string()), *columns, ("reason", pa.string())])
    parsed = pa.table([pa.array(v, f.type) for v, f in zip(results, schema, strict=True)], schema=schema)
    con.register("parsed_texts", parsed)
    con.execute(f"create or replace temp table {table} as from parsed_texts")
    con.unregister("parsed_texts")
