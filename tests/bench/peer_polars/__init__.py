"""The pipeline as a Polars script for this company's policy alone: lazy frames on the streaming engine.

Money is in floating point: near the exact result, but the parts add up to the bill only nearly. The tables are those of
the exact script, with the same left out.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl

from tests.bench.peer_polars import costs, facts, reading, reports, use


def run(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes a folder with a Parquet file for each fact and report under `target`."""
    landing = workspace_data / "landing"
    nodes, jobs = _collected(reading.nodes(landing, days)), _collected(reading.jobs(landing, seeds, days))
    teams, pools = reading.teams(seeds), reading.pools(seeds)

    held = use.job_node_hours(jobs, nodes)
    usage = _collected(use.usage(_collected(held), _collected(use.gpu_hours(landing, days)), nodes))
    lines = _collected(costs.lines(reading.charges(landing, days), nodes, seeds))
    pool_job_hours = _collected(costs.pool_job_hours(usage))
    pool_hours = _collected(costs.pool_hours(costs.node_costs(lines), pool_job_hours, nodes))
    direct, idle = _collected(costs.direct(pool_job_hours, pool_hours)), costs.idle(pool_job_hours, pool_hours)
    tagged = _collected(costs.tagged(lines))
    shared = costs.shared(lines, direct, tagged)
    allocations = _collected(facts.cost_allocations(direct, idle, tagged, shared, lines))
    team_days = _collected(reports.team_costs_daily(allocations, usage, teams, pools))

    tables = {
        "fct_billed_costs": facts.billed_costs(lines),
        "fct_job_usage_hourly": facts.job_usage_hourly(usage),
        "fct_pool_hours": facts.pool_hours(pool_hours),
        "fct_cost_allocations": allocations,
        "fct_job_days": facts.job_days(jobs),
        "rpt_job_receipts": reports.job_receipts(allocations, usage, jobs, teams, pools),
        "rpt_team_costs_daily": team_days,
        "rpt_idle_daily": reports.idle_daily(pool_hours, pools),
        "rpt_team_costs_monthly": reports.team_costs_monthly(team_days),
        "rpt_method_comparison": reports.method_comparison(pool_job_hours, pool_hours, teams),
    }
    for name, table in tables.items():
        _write(table, target / name)


def _collected(table: pl.LazyFrame) -> pl.LazyFrame:
    """What is used more than once is worked out once."""
    return table.collect(engine="streaming").lazy()


def _write(table: pl.LazyFrame, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.sink_parquet(folder / "all.parquet", engine="streaming")
