"""Dates, amounts and tags, which bills of all vendors write in the same few ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from duckdb import DuckDBPyConnection

from orchestration.connectors.base import Delivery, Found
from orchestration.connectors.sql import literal, money
from orchestration.errors import ApportionError

ZONELESS = "[0-9-]{8,10}([T ][0-9:.]+)?"
SLASHED = r"[0-9]{1,2}/[0-9]{1,2}/([0-9]{2}|[0-9]{4})( .*)?"
_SLASHED_FORMATS = [
    f"%m/%d/{year}{time}" for year in ("%y", "%Y") for time in ("", " %H:%M", " %H:%M:%S", " %I:%M:%S %p")
]
DRESSED = r"[-+]?(\$([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?|[0-9]{1,3}(,[0-9]{3})+\.[0-9]+)"
"""$1,000.00 and 1,000.00, but not 1,000, which is one and no thousandths in half of the world."""


def month_first(column: str) -> str:
    """4/1/25 as the first of April, at midnight or at the time that follows; other text is null."""
    formats = ", ".join(map(literal, _SLASHED_FORMATS))
    return f"(case when {is_slashed(column)} then try_strptime(trim({column}), [{formats}]) end)"


def is_slashed(column: str) -> str:
    return _matches(f"contains({column}, '/')", column, SLASHED)


def any_of(is_so: Callable[[str], str], columns: Sequence[str]) -> str:
    return " or ".join(map(is_so, columns))


def without_zone(columns: Sequence[str], found: Sequence[Found]) -> str:
    """Whether a row has a time that does not say where; in Parquet it is UTC by its type."""
    typed = [str(file) for file, one in enumerate(found) if one.variant.endswith("Parquet")]
    zoneless = any_of(lambda column: f"regexp_full_match({column}, {literal(ZONELESS)})", columns)
    return f"({zoneless}) and file not in ({', '.join(typed) or '-1'})"


def with_doubts(con: DuckDBPyConnection, table: str, found: Sequence[Found], tests: Mapping[str, str]) -> list[Found]:
    """The findings, each with what its file writes in a way that may be meant otherwise, and how often."""
    counted = ", ".join(f"count(*) filter ({condition})" for condition in tests.values())
    rows = {file: counts for file, *counts in con.execute(f"select file, {counted} from {table} group by 1").fetchall()}
    return [
        replace(
            one,
            doubts=(*one.doubts, *(f"{n} rows have {what}" for what, n in zip(tests, rows[file], strict=True) if n)),
        )
        if file in rows
        else one
        for file, one in enumerate(found)
    ]


def is_dressed(column: str) -> str:
    return _matches(f"contains({column}, ',') or contains({column}, '$')", column, DRESSED)


def _matches(hint: str, column: str, pattern: str) -> str:
    """Whether a column matches a pattern; on millions of rows, the hint that it may is a tenth of the price."""
    return f"(case when {hint} then regexp_full_match(trim({column}), {literal(pattern)}) else false end)"


def undressed_money(column: str) -> str:
    """Money that may have a dollar sign and separators between thousands."""
    bare = f"regexp_replace({column}, '[$,]', '', 'g')"
    return f"coalesce({money(column)}, case when {is_dressed(column)} then {money(bare)} end)"


def currency(column: str) -> str:
    """A currency as the other bills write it: ` chf` would be a book of its own."""
    return f"upper(trim({column}))"


def no_object(column: str) -> str:
    """Whether a text is there that is no JSON object; of a broken one, nobody may ask for the type."""
    kind = f"case when {column} is null then 'OBJECT' when json_valid({column}) then json_type({column}) end"
    return f"{kind} is distinct from 'OBJECT'"


def refuse_day_first(
    con: DuckDBPyConnection, table: str, columns: Sequence[str], deliveries: Sequence[Delivery]
) -> set[int]:
    """Stops at a file that writes 21/09/2026 and never a day after its month; gives the files that could be either.

    Taken for month first, its other dates would silently be of other months. Where both orders are there, the few
    that cannot be read are mistakes of their own.
    """
    every = " union all ".join(
        f"select file, line, {column} as text, try_cast(split_part(trim({column}), '/', 1) as int) as first,"
        f" try_cast(split_part(trim({column}), '/', 2) as int) as second from {table} where {is_slashed(column)}"
        for column in columns
    )
    unproven = set()
    for file, line, text in con.execute(
        f"""
        select file, min(line) filter (first > 12), min_by(text, line) filter (first > 12) from ({every})
        group by file having count(*) filter (second > 12) = 0
        """
    ).fetchall():
        if line is not None:
            raise ApportionError(
                f"{deliveries[file].path}, line {line}: {text} puts the day before the month",
                "export the dates as 2026-09-21, or with the month first",
            )
        unproven.add(file)
    return unproven
