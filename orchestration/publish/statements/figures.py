"""What the statements of a month say, read from the published marts once for all teams. All sums are SQL, in `sql/`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from orchestration.ledger.months import next_month
from orchestration.publish.page.names import Names

Row = dict[str, Any]

_SQL = Path(__file__).with_name("sql")
_MONTH = "1_month.sql"
SECTIONS = (
    *("documents", "totals", "breakdown", "idle_causes", "idle_reasons", "transfers", "true_ups", "jobs", "rates"),
    *("held", "differences", "lines"),
)
MOST_JOBS = 10
"""Of each currency: the dearest and the most wasteful ones. All of them are in `rpt_job_receipts`."""


@dataclass(frozen=True)
class Period:
    month: date
    content_hash: str | None
    """Of its close; none while it is open."""

    @property
    def name(self) -> str:
        return f"{self.month:%Y-%m}"


@dataclass(frozen=True)
class Statement:
    """One team's month."""

    period: Period
    team: Row
    sections: dict[str, list[Row]]
    names: Names

    def __getitem__(self, section: str) -> list[Row]:
        return self.sections[section]

    @property
    def team_id(self) -> str:
        return self.team["team_id"]

    @property
    def made_at(self) -> datetime:
        """The close; for a draft the end of the last day in it. Never the clock: what is made again is the same."""
        if self.team["closed_at"]:
            return self.team["closed_at"]
        last = self.team["last_date"] or self.period.month
        return datetime.combine(last + timedelta(days=1), datetime.min.time())


class Figures:
    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._teams = self._rows(
            """
            select team_id, team_name, is_built_in from marts.core.dim_teams
            union
            select team_id, team_name, is_built_in from marts.core.fct_team_days
            """
        )

    def periods(self) -> list[Period]:
        rows = self._rows(
            """
            select period_date, content_hash from closed_lines
            union
            select period_date, null from open_lines
            order by period_date
            """
        )
        return [Period(row["period_date"], row["content_hash"]) for row in rows]

    def statements(self, period: Period) -> Iterator[Statement]:
        """All teams of a month: a dozen queries, however many teams there are."""
        parameters = {
            "month": period.month,
            "before": (period.month - timedelta(days=1)).replace(day=1),
            "next": next_month(period.month),
            "most_jobs": MOST_JOBS,
        }
        for statement in self._connection.extract_statements(_text(_MONTH)):
            self._connection.execute(statement, _wanted(statement, parameters)).fetchall()
        found = {name: self._by_team(name, parameters) for name in SECTIONS}
        for team_id, (team,) in self._by_team("teams", parameters).items():
            sections = {name: rows.get(team_id, []) for name, rows in found.items()}
            yield Statement(period, team, sections, self._names(team_id))

    def _by_team(self, section: str, parameters: dict[str, Any]) -> dict[str, list[Row]]:
        (statement,) = self._connection.extract_statements(_text(f"{section}.sql"))
        found: dict[str, list[Row]] = {}
        for row in self._rows(statement, _wanted(statement, parameters)):
            found.setdefault(row["team_id"], []).append(row)
        return found

    def _names(self, team_id: str) -> Names:
        """What this team's statement withholds: the other teams. Platform and unattributed are payers, not teams."""
        own = {row[column] for row in self._teams if row["team_id"] == team_id for column in ("team_id", "team_name")}
        others = (row[column] for row in self._teams if not row["is_built_in"] for column in ("team_id", "team_name"))
        return Names(name for name in others if name not in own)

    def _rows(self, query: str | duckdb.Statement, parameters: dict[str, Any] | None = None) -> list[Row]:
        cursor = self._connection.execute(query, parameters or {})
        columns = [column[0] for column in cursor.description]
        return [dict(zip(columns, values, strict=True)) for values in cursor.fetchall()]


@contextlib.contextmanager
def opened(database: Path) -> Iterator[Figures | None]:
    """Nothing for marts of before the ledger: without lines there is no statement."""
    with duckdb.connect() as connection:
        path = str(database).replace("'", "''")
        connection.execute(f"attach '{path}' as marts (read_only)").fetchall()
        ledger = {"closed_lines": ("core", "fct_invoice_lines"), "open_lines": ("reporting", "rpt_open_invoice_lines")}
        there = connection.execute(
            "select schema_name, table_name from duckdb_tables() where database_name = 'marts'"
        ).fetchall()
        if not set(ledger.values()) <= set(there):
            yield None
            return
        for name, (schema, table) in ledger.items():
            connection.execute(f"create temp view {name} as select * from marts.{schema}.{table}").fetchall()
        yield Figures(connection)


def _wanted(statement: duckdb.Statement, parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if name in statement.named_parameters}


def _text(name: str) -> str:
    return (_SQL / name).read_text(encoding="utf-8")
