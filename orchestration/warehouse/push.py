"""The whole landed history into BigQuery, and the proof that it arrived: to move there, or when a table was dropped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from duckdb import DuckDBPyConnection

from orchestration.errors import ApportionError
from orchestration.landing.days import landed_days
from orchestration.landing.engine import session
from orchestration.landing.schemas import WHOLE_TABLES
from orchestration.warehouse import digest
from orchestration.warehouse.bigquery import Say, load_days, span, speaking_of
from orchestration.warehouse.parcels import all_files, landed_files
from orchestration.warehouse.settings import BigQuerySettings, client
from orchestration.warehouse.tables import LANDINGS, SCHEMAS

if TYPE_CHECKING:
    from google.cloud.bigquery import Client

SHOWN = 10
"""Differences that an error lists; more would only say the same."""


@dataclass(frozen=True)
class PushReport:
    days: list[date]
    loaded: list[date]
    """That differed and were replaced; the others were there already."""
    skipped: list[date]
    rows: Mapping[str, int]
    """By table, as counted on both sides."""
    verified: int
    """Days of tables whose rows and sums are equal on both sides."""
    only_there: list[date]
    """Days that BigQuery holds and this landing never had; they are left as they are."""

    @property
    def tables(self) -> list[str]:
        return list(self.rows)


def push(
    data_dir: Path, settings: BigQuerySettings, days: Iterable[date] | None = None, say: Say | None = None
) -> PushReport:
    """Loads what BigQuery lacks of the landed days, of all if none are given, and verifies them all.

    Days that are equal are not loaded again, so a push that was interrupted goes on where it was.
    """
    wanted = sorted(landed_days(data_dir) if days is None else set(days))
    if not wanted:
        raise ApportionError(
            f"nothing is landed in {data_dir}", "run 'apportion run' first, or point --data at the data folder"
        )
    loaded = load_days(data_dir, wanted, settings, say)
    if say:
        say(f"BigQuery: verifying {span(wanted)}")
    bigquery = client(settings)
    with session(data_dir) as con:
        rows, verified, differences = _compare(con, bigquery, data_dir, settings, wanted)
    if differences:
        more = f", and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
        raise ApportionError(
            f"{settings.landing} does not hold what is landed: {'; '.join(differences[:SHOWN])}{more}",
            f"somebody else wrote to it: delete these days from {settings.landing}.{LANDINGS}, and push again",
        )
    return PushReport(
        days=wanted,
        loaded=loaded.loaded,
        skipped=loaded.skipped,
        rows=rows,
        verified=verified,
        only_there=_only_there(bigquery, settings, wanted) if days is None else [],
    )


def _compare(
    con: DuckDBPyConnection, bigquery: Client, data_dir: Path, settings: BigQuerySettings, days: Sequence[date]
) -> tuple[dict[str, int], int, list[str]]:
    """Rows by table, how many days of tables are equal, and what differs. One query per table and side."""
    rows: dict[str, int] = {}
    differences: list[str] = []
    verified = 0
    for table in SCHEMAS:
        whole = table in WHOLE_TABLES
        here = digest.of_files(con, table, all_files(data_dir, table) if whole else landed_files(data_dir, table, days))
        with speaking_of(settings, f"{table} of {span(days)} cannot be verified"):
            there = digest.of_table(bigquery, settings, table, None if whole else days)
        rows[table] = sum(found.rows for found in here.values())
        for day in sorted(here.keys() | there.keys()) if whole else days:
            found = digest.difference(table, here.get(day, digest.NOTHING), there.get(day, digest.NOTHING))
            verified += found is None
            differences += [f"{table} of {day}: {found}"] if found else []
    return rows, verified, differences


def _only_there(bigquery: Client, settings: BigQuerySettings, days: Sequence[date]) -> list[date]:
    known = set(days)
    with speaking_of(settings, f"{LANDINGS} cannot be read"):
        found = bigquery.query(f"select distinct `date` from `{settings.landing}.{LANDINGS}`").result()
        return sorted(day for (day,) in found if day not in known)
