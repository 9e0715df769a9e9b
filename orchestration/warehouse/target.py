"""Where the models run, for those who run them and read what they made: a DuckDB file, or datasets in BigQuery."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from orchestration.errors import ApportionError
from orchestration.workspace import BIGQUERY, DUCKDB, Workspace

Row = tuple[Any, ...]
Answer = tuple[Sequence[str], list[Row]]
"""Names of the columns, and rows."""
_LAYER = re.compile(r"\b(core|reporting)\.(\w+)")


@dataclass(frozen=True)
class Query:
    """Asks in SQL that both engines know, over `core.` and `reporting.`."""

    _answer: Callable[[str], Answer]

    def __call__(self, sql: str) -> list[Row]:
        return self._answer(sql)[1]

    def named(self, sql: str) -> list[dict[str, Any]]:
        names, rows = self._answer(sql)
        return [dict(zip(names, row, strict=True)) for row in rows]


class NothingBuilt(ApportionError):
    """The tables are not there yet."""


def receive(workspace: Workspace, days: Iterable[date], say: Callable[[str], None]) -> None:
    """Makes what is landed of these days readable for the models. DuckDB reads the landed files as they are."""
    if workspace.target == BIGQUERY:
        from orchestration.warehouse.bigquery import load_days
        from orchestration.warehouse.settings import BigQuerySettings

        load_days(workspace.data, days, BigQuerySettings.from_environment(), say)


@contextmanager
def reading(workspace: Workspace, file: Path | None = None) -> Iterator[Query]:
    """For questions about what was built; the caller holds the writer's lock. `file` is another DuckDB file."""
    is_remote = workspace.target == BIGQUERY and file is None
    with _in_bigquery() if is_remote else _in_file(file or workspace.warehouse) as ask:
        yield ask


@contextmanager
def _in_file(file: Path) -> Iterator[Query]:
    import duckdb

    nothing = NothingBuilt("nothing is built yet", "apportion run --from … --to …")
    if not file.exists():
        raise nothing
    with duckdb.connect(str(file), read_only=True) as connection:

        def answer(sql: str) -> Answer:
            try:
                found = connection.execute(sql)
                return [column[0] for column in found.description or ()], found.fetchall()
            except duckdb.CatalogException as error:  # the first run did not get that far
                raise nothing from error

        yield Query(answer)


@contextmanager
def _in_bigquery() -> Iterator[Query]:
    from google.api_core.exceptions import NotFound

    from orchestration.warehouse.bigquery import speaking_of
    from orchestration.warehouse.settings import BigQuerySettings, client

    settings = BigQuerySettings.from_environment()
    service = client(settings)

    def answer(sql: str) -> Answer:
        named = _LAYER.sub(rf"`{settings.project}`.`{settings.dataset}_\1`.`\2`", sql)
        with speaking_of(settings, "the books cannot be read"):
            try:
                found = service.query(named).result()
                return [column.name for column in found.schema], [tuple(row.values()) for row in found]
            except NotFound as error:
                raise NothingBuilt("nothing is built yet", "apportion run --target bigquery --from … --to …") from error

    yield Query(answer)


def require_duckdb(workspace: Workspace, what: str) -> None:
    """For what works on the file alone."""
    if workspace.target != DUCKDB:
        raise ApportionError(
            f"{what} works on the DuckDB warehouse, not on '{workspace.target}'",
            "run the days on the default target too: both give the same books",
        )
