"""The pipeline as an honest pandas script for this company's policy alone: what most people would write first.

Vectorised merges and groups, everything in memory, money in floating point: near the exact result, but the parts add up
to the bill only nearly. The tables are those of the exact script, with the same left out.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pandas as pd

from tests.bench.peer_pandas import costs, facts, reading, reports, use


def run(workspace_data: Path, seeds: Path, target: Path, days: list[date]) -> None:
    """Writes a folder with a Parquet file for each fact and report under `target`."""
    landing = workspace_data / "landing"
    nodes, jobs, charges = (
        reading.nodes(landing, days),
        reading.jobs(landing, seeds, days),
        reading.charges(landing, days),
    )
    teams, pools = reading.teams(seeds), reading.pools(seeds)

    usage = use.usage(use.job_node_hours(jobs, nodes), use.gpu_hours(landing, days), nodes)
    lines = costs.lines(charges, nodes, seeds)
    pool_job_hours = costs.pool_job_hours(usage)
    pool_hours = costs.pool_hours(costs.node_costs(lines), pool_job_hours, nodes)
    direct, idle = costs.direct(pool_job_hours, pool_hours), costs.idle(pool_job_hours, pool_hours)
    tagged = costs.tagged(lines)
    shared = costs.shared(lines, direct, tagged)
    allocations = facts.cost_allocations(direct, idle, tagged, shared, lines)
    team_days = reports.team_costs_daily(allocations, usage, teams, pools)

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


def _write(table: pd.DataFrame, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "all.parquet", index=False)
