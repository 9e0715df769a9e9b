"""A published database of a year and fifty teams, with the tables of a real one and rows made by SQL."""

from __future__ import annotations

from pathlib import Path

import duckdb

TEAMS = 50
DAYS = 365

# Amounts are some hash of their place: neither equal nor random. A fifth of the pools are billed in another currency.
_ROWS = {
    "core.dim_dates": """
        select day as usage_date, date_trunc('month', day) as month_date, isodow(day) as weekday from days
    """,
    "core.dim_teams": """
        select format('team-{:02d}', team) as team_id, format('The team number {:02d}', team) as team_name,
            false as is_built_in
        from teams
    """,
    "core.dim_projects": """
        select format('team-{:02d}-project-{}', team, project) as project_id,
            format('Project {} of team {}', project, team) as project_name, format('team-{:02d}', team) as team_id
        from teams, range(3) as projects (project)
    """,
    "core.dim_pools": """
        select format('pool-{:02d}', pool) as pool_id, format('Cluster pool number {:02d}', pool) as pool_name
        from pools
    """,
    "core.dim_components": "from demo.core.dim_components",
    "reporting.rpt_team_costs_daily": """
        with cells as (
            select *, (team * 7 + project * 3 + place * 11) % 20 as pool,
                hash(day, team, project, place) % 100000 as cents
            from days, teams, range(4) as projects (project), range(3) as places (place)
        )

        select
            day as usage_date, date_trunc('month', day) as month_date, format('team-{:02d}', team) as team_id,
            if(project = 3, null, format('team-{:02d}-project-{}', team, project)) as project_id,
            format('pool-{:02d}', pool) as pool_id, ['gpu', 'cpu', 'memory'][place + 1] as component,
            if(pool % 5 = 0, 'CHF', 'USD') as currency,
            cents * 0.007123456 as direct_cost, cents * 0.003 as idle_cost, cents * 0.003 as idle_unscheduled_cost,
            0 as shared_cost, 0 as burst_cost, 0 as outcome_credit_cost, 0 as adjustment_cost, 0 as unattributed_cost,
            0 as idle_down_cost, 0 as idle_reserved_cost, 0 as idle_stranded_cost,
            cents * 0.010123456 as total_cost, 24 as gpu_hours, 24 as sampled_gpu_hours, cents % 24 as busy_gpu_hours,
            if(day < date '2026-12-01', 'final', 'provisional') as cost_status
        from cells
    """,
    "core.fct_billed_costs": """
        select usage_date, format('Provider {}', hash(pool_id) % 4) as provider, component, pool_id, currency,
            sum(total_cost) as allocatable_cost
        from year.reporting.rpt_team_costs_daily
        group by all
    """,
    "core.fct_pool_hours": """
        select day as usage_date, day + to_hours(hour) as hour_at, format('pool-{:02d}', pool) as pool_id,
            'gpu' as component, if(pool % 5 = 0, 'CHF', 'USD') as currency, 100 as capacity_hours, 100 as cost,
            hash(day, hour, pool) % 50 as unscheduled_hours, hash(day, hour, pool) % 50 as unscheduled_cost,
            hash(pool, hour, day) % 9 as down_hours, hash(pool, hour, day) % 9 as down_cost,
            1 as reserved_hours, 1 as reserved_cost, 0 as stranded_hours, 0 as stranded_cost
        from days, range(24) as hours (hour), pools
    """,
    "core.fct_job_usage_hourly": """
        select day as usage_date, day + to_hours(hour) as hour_at, format('team-{:02d}', team) as team_id,
            3600 * 8 as gpu_seconds, (hash(day, hour, team) % 1000) * 0.001 as busy_share
        from days, range(24) as hours (hour), teams
    """,
    "reporting.rpt_job_receipts": """
        with jobs as (
            select *, hash(day, team, job) % 100000 as cents, job % 4 as project, (team * 7 + job) % 20 as pool
            from days, teams, range(12) as jobs (job)
        )

        select
            day as usage_date, date_trunc('month', day) as month_date,
            format('cluster:{}{:02d}{:02d}:{}', strftime(day, '%y%m%d'), team, job, epoch(day)) as job_key,
            format('pretrain-a-model-of-team-{:02d}-{}', team, job) as job_name, 'cluster' as cluster_id,
            'pretraining' as workload_class, 'COMPLETED' as state, format('team-{:02d}', team) as team_id,
            if(project = 3, null, format('team-{:02d}-project-{}', team, project)) as project_id,
            format('user-{}', cents % 400) as user_name, format('pool-{:02d}', pool) as pool_id,
            if(pool % 5 = 0, 'CHF', 'USD') as currency,
            cents * 0.005123456 as gpu_cost, cents * 0.001123456 as cpu_cost, cents * 0.000876544 as memory_cost,
            cents * 0.000123456 as energy_cost, 0 as other_direct_cost, cents * 0.001 as idle_cost, 0 as burst_cost,
            0 as outcome_credit_cost, cents * -0.0001 as adjustment_cost, cents * 0.008146912 as total_cost,
            cents * 0.002123456 as held_idle_cost, 96.25 as gpu_hours, 1540 as core_hours, 8000.5 as memory_gib_hours,
            55.25 as energy_kwh, 0.4321 as busy_share, day as start_at, day + to_hours(23) as end_at
        from jobs
    """,
    "reporting.rpt_reconciliation": """
        select provider, strftime(usage_date, 'INV-%Y-%m') as invoice_id, currency,
            date_trunc('month', usage_date) as billing_period_date, count(*) as line_count,
            sum(allocatable_cost) as billed_cost, sum(allocatable_cost) as allocatable_cost, 0 as paid_ahead_cost,
            0 as released_cost, 0 as outside_cost, 0 as restated_cost, 0 as billed_difference, 1 as delivery_count,
            0 as allocated_difference, 'final' as cost_status
        from year.core.fct_billed_costs
        group by all
    """,
}


def write_year(like: Path, database: Path) -> None:
    """All tables of the other database, empty but for those that the page reads."""
    with duckdb.connect() as connection:
        connection.execute(f"attach '{like}' as demo (read_only)").fetchall()
        connection.execute(f"attach '{database}' as year").fetchall()
        connection.execute(
            f"""
            create temp view days as
            select date '2026-01-01' + cast(day as integer) as day from range({DAYS}) as series (day)
            """
        ).fetchall()
        connection.execute(f"create temp view teams as select team from range({TEAMS}) as t (team)").fetchall()
        connection.execute("create temp view pools as select pool from range(20) as p (pool)").fetchall()
        tables = connection.execute(
            """
            select schema_name, table_name from duckdb_tables()
            where database_name = 'demo' and schema_name in ('core', 'reporting')
            """
        ).fetchall()
        for schema, table in tables:
            connection.execute(f"create schema if not exists year.{schema}").fetchall()
            connection.execute(f"create table year.{schema}.{table} as from demo.{schema}.{table} limit 0").fetchall()
        for table, query in _ROWS.items():
            connection.execute(f"insert into year.{table} by name {query}").fetchall()
