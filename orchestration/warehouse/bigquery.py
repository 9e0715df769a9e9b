"""Landed days into BigQuery: what differs is replaced by whole days, what is equal is left alone.

The remote `landings` say what BigQuery holds, so there is no other state to lose. A day's rows of it are there only
while every table of the day is as they say: they are removed before the first table of the day changes and written
after the last. A load that was killed is simply done again.

A day of a table is replaced by one MERGE, which readers see as a whole or not at all, out of a table of its own that
a load job filled. (A load job into `table$20260101` could do it alone, but the emulator of the tests refuses that, and
what nobody tries does not work.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from duckdb import DuckDBPyConnection

from orchestration.errors import ApportionError
from orchestration.landing.engine import session
from orchestration.landing.schemas import LANDINGS_SCHEMA, TABLES, WHOLE_TABLES
from orchestration.warehouse import digest
from orchestration.warehouse.access import in_our_words, reason
from orchestration.warehouse.parcels import Parcel, all_files, landed_files, outbox, pack, reading
from orchestration.warehouse.settings import NO_ACCESS, BigQuerySettings, client
from orchestration.warehouse.tables import LANDINGS, columns, ensure
from orchestration.warehouse.upload import Wait, filled, staged

if TYPE_CHECKING:
    from google.cloud.bigquery import Client, QueryJob, QueryJobConfig

CHUNK_BYTES = 500_000_000
CHUNK_DAYS = 31
"""So many days travel together: a job takes seconds however small it is. What was killed is repeated by chunks."""

Entry = tuple[str, str, int, int, str]
"""Of `landings`: source, table, rows, quarantined, content hash."""
Landed = dict[date, set[Entry]]
Say = Callable[[str], None]


@dataclass
class LoadReport:
    days: list[date]
    """That were asked for."""
    loaded: list[date] = field(default_factory=list)
    """That differed and were replaced."""
    rows: dict[str, int] = field(default_factory=dict)
    """That were loaded, by table."""

    @property
    def skipped(self) -> list[date]:
        loaded = set(self.loaded)
        return [day for day in self.days if day not in loaded]


def load_days(data_dir: Path, days: Iterable[date], settings: BigQuerySettings, say: Say | None = None) -> LoadReport:
    """Makes the landing tables in BigQuery hold of these days what is landed here."""
    report = LoadReport(sorted(set(days)))
    say = say or (lambda _: None)
    bigquery = client(settings)
    with speaking_of(settings, "the landing tables cannot be made"):
        ensure(bigquery, settings)
    with session(data_dir) as con, outbox(data_dir) as folder:
        here = landed_here(con, data_dir, report.days)
        there = landed_there(bigquery, settings, report.days)
        changed = {day: tables for day in report.days if (tables := _changed(here[day], there[day])) is not None}
        load = _Load(bigquery, settings, con, data_dir, folder, here, report)
        for chunk in _chunks(data_dir, changed):
            say(f"BigQuery: loading {span(chunk)}")
            known = [day for day in chunk if there[day]]
            _replace_days(load, {day: changed[day] for day in chunk}, known)
            report.loaded += chunk
        for table in WHOLE_TABLES:
            _replace_whole(load, table)
    if report.loaded:
        say(f"BigQuery: {sum(report.rows.values()):,} rows of {span(report.loaded)} loaded")
    return report


def landed_here(con: DuckDBPyConnection, data_dir: Path, days: Sequence[date]) -> Landed:
    found: Landed = {day: set() for day in days}
    files = landed_files(data_dir, LANDINGS, days)
    if files:
        with reading(LANDINGS, files) as rows:
            entries = con.execute(f"select {', '.join(LANDINGS_SCHEMA.names)} from {rows}").fetchall()
        for *entry, day in entries:
            found[day].add(tuple(entry))
    return found


def landed_there(bigquery: Client, settings: BigQuerySettings, days: Sequence[date]) -> Landed:
    found: Landed = {day: set() for day in days}
    with speaking_of(settings, "what is loaded cannot be read"):
        rows = bigquery.query(
            f"select {columns(LANDINGS)} from `{settings.landing}.{LANDINGS}` where `date` in unnest(@days)",
            job_config=_of_days(days),
        ).result()
        for *entry, day in rows:
            found[day].add(tuple(entry))
    return found


@contextmanager
def speaking_of(settings: BigQuerySettings, failure: str) -> Iterator[None]:
    with in_our_words(settings.landing, failure, lambda error: _remedy(settings, error), NO_ACCESS):
        yield


def span(days: Sequence[date]) -> str:
    return str(days[0]) if len(days) == 1 else f"{days[0]} to {days[-1]} ({len(days)} days)"


def _changed(here: set[Entry], there: set[Entry]) -> set[str] | None:
    """The tables of a day to replace; None: the day is equal. Of a day that is not known there, all."""
    if here == there and there:
        return None
    if not there:
        return set(TABLES)
    return {table for table in TABLES if _content(here, table) != _content(there, table)}


def _content(entries: set[Entry], table: str) -> set[tuple[str, str]]:
    return {(source, content) for source, of, _, _, content in entries if of == table}


def _chunks(data_dir: Path, changed: Mapping[date, set[str]]) -> Iterator[list[date]]:
    """Days that travel together, by the size of what would have to be repeated if they do not arrive."""
    chunk: list[date] = []
    size = 0
    for day in sorted(changed):
        weight = sum(file.stat().st_size for table in TABLES for file in landed_files(data_dir, table, [day]))
        if chunk and (size + weight > CHUNK_BYTES or len(chunk) == CHUNK_DAYS):
            yield chunk
            chunk, size = [], 0
        chunk.append(day)
        size += weight
    if chunk:
        yield chunk


# --- replacing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Load:
    """What all steps of one load share."""

    bigquery: Client
    settings: BigQuerySettings
    con: DuckDBPyConnection
    data_dir: Path
    folder: Path
    here: Landed
    report: LoadReport

    def speaking_of(self, table: str, days: Sequence[date]) -> AbstractContextManager[None]:
        return speaking_of(self.settings, f"{table} of {span(days)} cannot be loaded")


def _replace_days(load: _Load, changed: Mapping[date, set[str]], known: Sequence[date]) -> None:
    days = list(changed)
    if known:
        with load.speaking_of(LANDINGS, known):
            _delete(load, LANDINGS, known).result()
    by_table = {table: [day for day in days if table in changed[day]] for table in TABLES}
    _replace(load, {table: of for table, of in by_table.items() if of})
    _replace(load, {LANDINGS: days})


def _replace(load: _Load, days_of: Mapping[str, Sequence[date]]) -> None:
    """Replaces days of tables. BigQuery works on all of them at once; we only wait."""
    with ExitStack() as stages:
        loading: dict[str, tuple[str, Wait]] = {}
        replacing: dict[str, QueryJob] = {}
        for table, days in days_of.items():
            with load.speaking_of(table, days):
                parcel = pack(load.con, table, landed_files(load.data_dir, table, days), load.folder)
                _refuse_if_not_as_landed(load, table, days, parcel)
                load.report.rows[table] = load.report.rows.get(table, 0) + parcel.rows
                if parcel.rows:
                    stage = staged(load.bigquery, load.settings, table, parcel.path)
                    loading[table] = stages.enter_context(stage)
                else:
                    replacing[table] = _delete(load, table, days)
        for table, (name, wait) in loading.items():
            with load.speaking_of(table, days_of[table]):
                wait()
                replacing[table] = _merge(load, table, name, days_of[table])
        for table, job in replacing.items():
            with load.speaking_of(table, days_of[table]):
                job.result()


def _merge(load: _Load, table: str, staging: str, days: Sequence[date]) -> QueryJob:
    target = f"{load.settings.landing}.{table}"
    return load.bigquery.query(replace_statement(table, target, staging), job_config=_of_days(days))


def _delete(load: _Load, table: str, days: Sequence[date]) -> QueryJob:
    return load.bigquery.query(empty_statement(f"{load.settings.landing}.{table}"), job_config=_of_days(days))


def replace_statement(table: str, target: str, staging: str) -> str:
    """@days of the target become what is staged. It never matches, so it joins nothing, and reads only these days."""
    return (
        f"merge `{target}` as there using `{staging}` as here on false"
        " when not matched by source and there.`date` in unnest(@days) then delete"
        f" when not matched then insert ({columns(table)}) values ({columns(table)})"
    )


def empty_statement(target: str) -> str:
    """Whole partitions, which BigQuery drops without reading them."""
    return f"delete from `{target}` where `date` in unnest(@days)"


def _of_days(days: Sequence[date]) -> QueryJobConfig:
    from google.cloud.bigquery import ArrayQueryParameter, QueryJobConfig

    return QueryJobConfig(query_parameters=[ArrayQueryParameter("days", "DATE", list(days))])


def _refuse_if_not_as_landed(load: _Load, table: str, days: Sequence[date], parcel: Parcel) -> None:
    """Better no day in the warehouse than one that its own landing contradicts."""
    if table == LANDINGS:
        expected = sum(len(load.here[day]) for day in days)
    else:
        expected = sum(rows for day in days for _, of, rows, _, _ in load.here[day] if of == table)
    if parcel.rows != expected:
        raise ApportionError(
            f"the landed files of {table} of {span(days)} hold {parcel.rows} rows, and their landing says {expected}",
            "land these days again",
        )


def _replace_whole(load: _Load, table: str) -> None:
    """History is small, and its old days change when a file is corrected in its place: all of it, if it differs."""
    with speaking_of(load.settings, f"{table} cannot be loaded"):
        files = all_files(load.data_dir, table)
        if digest.of_files(load.con, table, files) == digest.of_table(load.bigquery, load.settings, table):
            return
        parcel = pack(load.con, table, files, load.folder)
        with filled(load.bigquery, load.settings, table, parcel.path, f"{load.settings.landing}.{table}") as wait:
            wait()
        load.report.rows[table] = parcel.rows


def _remedy(settings: BigQuerySettings, error: Exception) -> str:
    from google.api_core.exceptions import BadRequest, Forbidden, NotFound

    why = reason(error)
    if why == "bytesBilledLimitExceeded":
        return "raise APPORTION_BIGQUERY_MAX_BYTES, or load fewer days at once"
    if why == "billingNotEnabled":
        return "enable billing for the project: without it BigQuery changes no table, however small"
    if why in ("quotaExceeded", "rateLimitExceeded"):
        return "raise the project's quota or wait until it is renewed, and run again: what was loaded is kept"
    if isinstance(error, Forbidden):
        return (
            f"give the account the roles BigQuery Data Editor on the dataset {settings.landing} (BigQuery User on the"
            " project, to make it) and BigQuery Job User on the project"
            + (f", and Storage Object User on {settings.bucket}" if settings.bucket else "")
        )
    if isinstance(error, NotFound):
        return (
            f"check APPORTION_BIGQUERY_PROJECT ({settings.project}) and APPORTION_BIGQUERY_LOCATION"
            f" ({settings.location}), where the dataset and the bucket have to be; then run again"
        )
    if isinstance(error, BadRequest):
        return (
            "if the table is of another version, drop it and push the landed history again; else land these days again"
        )
    return "run again: what was loaded is kept, and what was begun is done again"
