"""The books of some days, worked out a second time from the facts, by the SQL beside this file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, Literal

import duckdb
import yaml

from orchestration.errors import ApportionError
from orchestration.workspace import PROJECT_ROOT, Workspace

SQL = Path(__file__).parent / "sql"
STEPS = ("arithmetic", "usage", "direct", "idle", "daily", "burst", "outcome", "adjustments", "books")
"""In the order of docs/allocation.md; each reads what the ones before it made."""

Subject = Literal["job_key", "team_id"]


@contextlib.contextmanager
def opened(workspace: Workspace) -> Iterator[duckdb.DuckDBPyConnection]:
    """The warehouse, to be read. With the lock: a reader in another process would make the next run fail."""
    if not workspace.warehouse.exists():
        raise _nothing_built()
    with workspace.writing(), duckdb.connect(str(workspace.warehouse), read_only=True) as warehouse:
        try:
            days = warehouse.execute("select count(*) from core.fct_days").fetchone()
        except duckdb.CatalogException:  # the first run did not get that far
            raise _nothing_built() from None
        if days == (0,):
            raise _nothing_built()
        yield warehouse


def work_out(warehouse: duckdb.DuckDBPyConnection, days: Sequence[date], column: Subject, subject: str) -> None:
    """Leaves the temporary tables that the SQL files describe, with the rows of the subject marked as `is_mine`."""
    choices = _choices()
    warehouse.execute("set variable subject = ?", [subject])
    warehouse.execute("set variable subject_column = ?", [column])
    warehouse.execute("set variable reporting_currency = ?", [choices["reporting_currency"]])
    warehouse.execute("set variable choices = ?", ["/".join(str(value) for value in choices.values())])
    named = {"team_id": "team", "job_key": "job"}[column]
    warehouse.execute(
        f"create or replace temp macro is_mine(team, job) as coalesce({named} = getvariable('subject'), false)"
    )
    # A day keeps the hash of the policy rows that it was built with; the seeds in the warehouse may be newer.
    warehouse.execute(
        """
        create or replace temp table days as
        select
            days.usage_date,
            days.policy_hash <> md5(
                getvariable('choices') || '/'
                || coalesce(string_agg(policies.row_hash, ',' order by policies.seed_name, policies.row_hash), '')
            ) as is_stale
        from core.fct_days as days
        left join core.dim_policies as policies
            on
                policies.valid_from <= days.usage_date
                and days.usage_date < coalesce(policies.valid_to, date '9999-12-31')
        where list_contains(?, days.usage_date)
        group by days.usage_date, days.policy_hash
        """,
        [list(days)],
    )
    for step in STEPS:
        try:
            warehouse.execute(sql(step))
        except duckdb.BinderException as error:
            raise ApportionError(
                f"the warehouse was made by another version of the models: {str(error).splitlines()[0]}",
                "run the built days again, as docs/backfills.md says under “After an update”",
            ) from error


@cache
def sql(name: str) -> str:
    return (SQL / f"{name}.sql").read_text(encoding="utf-8")


def rows(warehouse: duckdb.DuckDBPyConnection, query: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    cursor = warehouse.execute(query, list(parameters))
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


@cache
def _choices() -> dict[str, Any]:
    """What a run is told beside the seeds, in the order in which `int_days` hashes it."""
    variables = yaml.safe_load((PROJECT_ROOT / "dbt_project" / "dbt_project.yml").read_text(encoding="utf-8"))["vars"]
    return {name: variables[name] for name in ("cost_basis", "reporting_currency", "minimum_coverage")}


def _nothing_built() -> ApportionError:
    return ApportionError("nothing is built yet, so there is nothing to explain", "apportion run --from … --to …")
