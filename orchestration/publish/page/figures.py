"""What the pages show, aggregated once from the published marts. All sums are SQL, in `sql/`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

_SQL = Path(__file__).with_name("sql")

MOST_MONTHS = 13
"""A year and the same month of the year before. Older months are in the marts."""
MOST_JOBS_OF_A_PROJECT = 25
WORST_JOBS = 10

_PARAMETERS = {
    "months": MOST_MONTHS,
    "most_jobs_of_a_project": MOST_JOBS_OF_A_PROJECT,
    "worst_jobs": WORST_JOBS,
}

_LINES = """
    period_date date, team_id varchar, currency varchar, allocation_kind varchar, corrected_period_date date,
    cause varchar, amount decimal(38, 9), invoiced_amount decimal(38, 9),
    reporting_currency varchar, reporting_amount decimal(38, 9)
"""
_CLOSED_LINES = f"""
    close_number bigint, invoice_id varchar, closed_at timestamp, closed_by varchar, override_reason varchar,
    content_hash varchar, {_LINES}
"""


class Figures:
    """The aggregated tables, to be asked for everything or for one team."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def rows(self, query: str, **parameters: Any) -> list[tuple]:
        return self._connection.execute(query, parameters).fetchall()


@contextlib.contextmanager
def aggregated(database: Path) -> Iterator[Figures]:
    """Reads the large tables once; fifty teams then cost fifty looks at small ones."""
    with duckdb.connect() as connection:
        path = str(database).replace("'", "''")
        connection.execute(f"attach '{path}' as marts (read_only)").fetchall()
        _ledger(connection, "closed_lines", "core", "fct_invoice_lines", _CLOSED_LINES)
        _ledger(connection, "open_lines", "reporting", "rpt_open_invoice_lines", _LINES)
        for file in sorted(_SQL.glob("*.sql")):
            for statement in connection.extract_statements(file.read_text(encoding="utf-8")):
                wanted = {name: value for name, value in _PARAMETERS.items() if name in statement.named_parameters}
                connection.execute(statement, wanted).fetchall()
        yield Figures(connection)


def _ledger(connection: duckdb.DuckDBPyConnection, name: str, schema: str, table: str, columns: str) -> None:
    """Books without a ledger yet have no closed months, which is no error."""
    found = connection.execute(
        "select 1 from duckdb_tables() where database_name = 'marts' and schema_name = ? and table_name = ?",
        [schema, table],
    ).fetchall()
    if found:
        connection.execute(f"create temp view {name} as select * from marts.{schema}.{table}").fetchall()
    else:
        connection.execute(f"create temp table {name} ({columns})").fetchall()
