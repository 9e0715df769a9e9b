"""What a table holds of each day in a few exact numbers, worked out by two engines: equal numbers, equal rows.

Of every column the values that are there are counted and summed, without rounding and in any order: times as
microseconds, text as the first 48 bits of its MD5, floating point in millionths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from duckdb import DuckDBPyConnection

from orchestration.landing.schemas import TABLES
from orchestration.warehouse.parcels import reading
from orchestration.warehouse.settings import BigQuerySettings
from orchestration.warehouse.tables import SCHEMAS

if TYPE_CHECKING:
    from google.cloud.bigquery import Client

IN_BIGQUERY = {
    "name": "`{}`",
    "text": "cast(cast(concat('0x', substr(to_hex(md5({0})), 1, 12)) as int64) as bignumeric)",
    "time": "cast(unix_micros({0}) as bignumeric)",
    "date": "unix_date({0})",
    "money": "{0}",
    "whole": "cast({0} as bignumeric)",
    "float": "if(is_nan({0}) or is_inf({0}), null, cast(round({0} * 1000000) as bignumeric))",
    "truth": "cast({0} as int64)",
}
IN_DUCKDB = {
    "name": '"{}"',
    "text": "cast('0x' || substr(md5({0}), 1, 12) as bigint)",
    "time": "epoch_us({0})",
    "date": "{0} - date '1970-01-01'",
    "money": "{0}",
    "whole": "{0}",
    "float": "case when isfinite({0}) then cast(round({0} * 1000000) as hugeint) end",
    "truth": "cast({0} as bigint)",
}


@dataclass(frozen=True)
class Digest:
    """Of one table and day."""

    rows: int
    columns: tuple[tuple[int, Decimal], ...]
    """How many values each column has, and their sum."""


NOTHING = Digest(0, ())
Digests = dict[date, Digest]


def digested(table: str) -> list[str]:
    """The columns that say something about the world: a day delivered again is equal, whichever file it came in."""
    return TABLES[table].content if table in TABLES else [name for name in SCHEMAS[table].names if name != "date"]


def of_files(con: DuckDBPyConnection, table: str, files: Sequence[Path]) -> Digests:
    if not files:
        return {}
    with reading(table, files) as rows_of:
        found = con.execute(f"select {sums(table, IN_DUCKDB)} from {rows_of} group by date").fetchall()
    return _digests(found)


def of_table(client: Client, settings: BigQuerySettings, table: str, days: Sequence[date] | None = None) -> Digests:
    """Of some days, or of all."""
    from google.cloud.bigquery import ArrayQueryParameter, QueryJobConfig

    only = QueryJobConfig(query_parameters=[ArrayQueryParameter("days", "DATE", list(days or []))])
    rows = client.query(
        f"select {sums(table, IN_BIGQUERY)} from `{settings.landing}.{table}`"
        + ("" if days is None else " where `date` in unnest(@days)")
        + " group by `date`",
        job_config=only if days is not None else None,
    ).result()
    return _digests(tuple(row) for row in rows)


def difference(table: str, here: Digest, there: Digest) -> str | None:
    """In what they differ, or nothing."""
    if here == there:
        return None
    if here.rows != there.rows:
        return f"{here.rows} rows here, {there.rows} there"
    found = [name for name, one, two in zip(digested(table), here.columns, there.columns, strict=True) if one != two]
    return f"other values of {', '.join(found)}"


def sums(table: str, forms: dict[str, str]) -> str:
    quoted = forms["name"]
    parts = [quoted.format("date"), "count(*) as row_count"]
    for place, name in enumerate(digested(table)):
        column = quoted.format(name)
        value = forms[_kind(SCHEMAS[table].field(name).type)].format(column)
        parts += [f"count({column}) as count_{place}", f"sum({value}) as sum_{place}"]
    return ", ".join(parts)


def _kind(column: pa.DataType) -> str:
    if pa.types.is_decimal(column):
        return "money"
    if pa.types.is_timestamp(column):
        return "time"
    return {
        pa.string(): "text",
        pa.int64(): "whole",
        pa.float64(): "float",
        pa.bool_(): "truth",
        pa.date32(): "date",
    }[column]


def _digests(rows: Iterable[tuple]) -> Digests:
    return {
        day: Digest(count, tuple((n, Decimal(total or 0)) for n, total in zip(sums[::2], sums[1::2], strict=True)))
        for day, count, *sums in rows
    }
