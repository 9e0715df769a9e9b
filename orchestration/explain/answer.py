"""`apportion explain`: finds who is meant, works out the days, prints the receipt."""

from __future__ import annotations

import calendar
import json
from dataclasses import asdict
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import typer
from rich.console import Console

from orchestration.errors import ApportionError
from orchestration.explain.books import opened, rows, work_out
from orchestration.explain.printing import print_run, print_runs, print_team
from orchestration.explain.receipt import Receipt, read
from orchestration.explain.subjects import Run, days_of, days_of_month, runs_of, team_in
from orchestration.workspace import Workspace

MOST_RUNS = 3
"""More runs than this are listed, not explained: an array can have hundreds."""
MOST_DAYS = 3
"""A job of more days is summed over them; --day shows one."""


def explain_job(
    workspace: Workspace, name: str, day: date | None, hour: int | None, as_json: bool, console: Console
) -> None:
    with opened(workspace) as warehouse:
        runs = runs_of(warehouse, name)
        if len(runs) > MOST_RUNS:
            if as_json:
                _print_json({"runs": [asdict(run) for run in runs]})
            else:
                print_runs(runs, name, console)
            return
        days_by_run = [(run, days_of(warehouse, run)) for run in runs]
        if day:
            days_by_run = _on(day, days_by_run)
        receipts = []
        for run, days in days_by_run:
            if hour is not None and len(days) > 1:
                raise ApportionError(
                    f"{run.job_key} ran on {len(days)} days, and each of them has an hour {hour}",
                    f"say which: --day {days[0]} --hour {hour}",
                )
            work_out(warehouse, days, "job_key", run.job_key)
            if hour is not None:
                _require_charged(warehouse, run, hour)
            receipts.append(read(warehouse, run, by_day=len(days) <= MOST_DAYS, hour=hour))
    if as_json:
        _print_json({"runs": [_told(receipt) for receipt in receipts]})
        return
    for place, receipt in enumerate(receipts):
        if place:
            console.print("\n")
        print_run(receipt, console)


def explain_team(
    workspace: Workspace, name: str, month: date, day: date | None, pool: str | None, as_json: bool, console: Console
) -> None:
    with opened(workspace) as warehouse:
        days = days_of_month(warehouse, month, day)
        team = team_in(warehouse, name, days)
        work_out(warehouse, days, "team_id", team.team_id)
        receipt = read(warehouse, team, by_day=len(days) == 1, hour=None)
    pools = list(dict.fromkeys(block.pool_id for block in receipt.blocks))
    if pool and pool not in pools:
        raise ApportionError(
            f"nothing of pool {pool!r} is charged to {team.team_id} on these days",
            f"it pays for {', '.join(pools)}" if pools else "it pays for no pool",
        )
    if as_json:
        _print_json(_told(receipt))
    else:
        print_team(receipt, calendar.monthrange(month.year, month.month)[1], pool, console)


def _on(day: date, days_by_run: list[tuple[Run, list[date]]]) -> list[tuple[Run, list[date]]]:
    """Of several runs, those of the day."""
    found = [(run, [day]) for run, days in days_by_run if day in days]
    if not found:
        known = "; ".join(f"{run.job_key} from {days[0]} to {days[-1]}" for run, days in days_by_run)
        raise ApportionError(f"it did not run on {day}, as far as is built", f"there is {known}")
    return found


def _require_charged(warehouse: duckdb.DuckDBPyConnection, run: Run, hour: int) -> None:
    found = rows(
        warehouse,
        """
        select distinct hour(hour_at) as hour
        from direct_rows inner join payers using (payer)
        where is_mine order by hour
        """,
    )
    hours = [row["hour"] for row in found]
    if hour not in hours:
        raise ApportionError(
            f"{run.job_key} held nothing that cost something in the hour from {hour}:00",
            f"--hour can be {', '.join(str(hour) for hour in hours)}" if hours else "leave --hour out",
        )


def _told(receipt: Receipt) -> dict[str, Any]:
    return {**asdict(receipt), "policies": [asdict(policy) for policy in receipt.policies.values()]} | {
        "agrees": receipt.agrees
    }


def _print_json(answer: dict[str, Any]) -> None:
    """Amounts as text, so that no reader makes floating-point numbers of them."""
    typer.echo(json.dumps(answer, default=_as_text, indent=2, ensure_ascii=False))


def _as_text(value: object) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
