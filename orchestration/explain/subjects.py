"""Who can be explained: the runs of a job, a team in a month; and what to say about those that nobody knows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import duckdb

from orchestration.errors import ApportionError
from orchestration.explain.books import rows

LISTED = 8


@dataclass(frozen=True)
class Run:
    """One run of a job, as the newest built day knows it."""

    job_key: str
    job_id: str | None
    job_name: str | None
    cluster_id: str
    team_id: str
    project_id: str | None
    user_name: str | None
    state: str | None
    start_at: datetime
    end_at: datetime
    is_running: bool
    gpus: Decimal
    workload_class: str
    payer_rule: str | None
    workload_rule: str | None


@dataclass(frozen=True)
class Team:
    team_id: str
    team_name: str
    team_path: str
    cost_centre: str | None
    is_built_in: bool
    teams_below: list[str]
    """What they pay is theirs, and not in the receipt."""


def runs_of(warehouse: duckdb.DuckDBPyConnection, name: str) -> list[Run]:
    """By job key, by the id that its user knows, by that of its array, or by the scheduler's own number in the key."""
    columns = ", ".join(Run.__dataclass_fields__)
    found = rows(
        warehouse,
        f"""
        select {columns} from core.dim_jobs
        where job_key = $1 or job_id = $1 or array_job_id = $1 or split_part(job_key, ':', 2) = $1
        -- A full key means that run and no other.
        qualify job_key = $1 or count(*) filter (job_key = $1) over () = 0
        order by start_at, job_key
        """,
        [name],
    )
    if not found:
        raise _unknown_job(warehouse, name)
    return [Run(**row) for row in found]


def days_of(warehouse: duckdb.DuckDBPyConnection, run: Run) -> list[date]:
    found = rows(
        warehouse, "select usage_date from core.fct_job_days where job_key = ? order by usage_date", [run.job_key]
    )
    return [row["usage_date"] for row in found]


def days_of_month(warehouse: duckdb.DuckDBPyConnection, month: date, day: date | None) -> list[date]:
    built = [row["usage_date"] for row in rows(warehouse, "select usage_date from core.fct_days order by usage_date")]
    days = [built_day for built_day in built if (built_day.year, built_day.month) == (month.year, month.month)]
    if not days:
        months = dict.fromkeys(f"{built_day:%Y-%m}" for built_day in built)
        raise ApportionError(
            f"no day of {month:%Y-%m} is built",
            f"there are days of {', '.join(months)}; or apportion run --from … --to …",
        )
    if day and day not in days:
        raise ApportionError(
            f"{day} is not among the built days of {month:%Y-%m}",
            f"the first of them is {days[0]}, the last {days[-1]}",
        )
    return [day] if day else days


def team_in(warehouse: duckdb.DuckDBPyConnection, name: str, days: list[date]) -> Team:
    found = rows(
        warehouse,
        """
        select
            team_id, team_name, team_path, cost_centre, is_built_in,
            array(
                select distinct below.team_id from core.fct_team_days as below
                where below.parent_team_id = teams.team_id and list_contains($2, below.usage_date) order by 1
            ) as teams_below
        from core.fct_team_days as teams
        where team_id = $1 and list_contains($2, usage_date) order by usage_date desc limit 1
        """,
        [name, days],
    )
    if found:
        return Team(**found[0])
    near = rows(
        warehouse,
        """
        select distinct team_id, team_name from core.fct_team_days
        where list_contains($2, usage_date)
        order by least(
            damerau_levenshtein(lower(team_id), lower($1)), damerau_levenshtein(lower(team_name), lower($1))
        ), team_id
        limit $3
        """,
        [name, days, LISTED],
    )
    known = ", ".join(f"{row['team_id']} ({row['team_name']})" for row in near)
    when = f"on {days[0]}" if len(days) == 1 else f"between {days[0]} and {days[-1]}"
    raise ApportionError(f"there is no team {name!r} {when}", f"the nearest are {known}")


def _unknown_job(warehouse: duckdb.DuckDBPyConnection, name: str) -> ApportionError:
    inside = rows(
        warehouse,
        "select job_key from core.dim_jobs where contains(job_key, ?) or job_name = ? order by start_at desc limit ?",
        [name, name, LISTED],
    )
    if inside:
        keys = ", ".join(row["job_key"] for row in inside)
        return ApportionError(f"no job has the id {name!r}", f"it is known under these job keys: {keys}")
    near = rows(
        warehouse,
        """
        select distinct coalesce(job_id, job_key) as job_id from core.dim_jobs
        order by damerau_levenshtein(coalesce(job_id, job_key), $1), job_id limit 5
        """,
        [name],
    )
    return ApportionError(
        f"no job has the id {name!r} on the days that are built",
        f"the nearest ids are {', '.join(row['job_id'] for row in near)}; `apportion status` lists the built days",
    )
