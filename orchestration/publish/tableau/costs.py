"""The table behind the data source: every cost with whoever pays it, down to the job, in names that people read.

It is the grain at which one can walk from an organisation to a single run, so it comes from the allocations and not
from a report. Names are those of the day, as in the reports. Levels that a cost does not have (overhead has no job)
say so in words, because Tableau writes `Null` otherwise.

GPU-hours come from the receipts, which know every hour once: they are added to the row of the job's direct GPU cost,
or to a row of their own with a cost of 0 where the hour cost nothing.
"""

from __future__ import annotations

TABLE = "costs"
KEY = (
    "usage_date", "team_id", "project_id", "user_name", "job_key", "pool_id", "component", "allocation_kind",
    "idle_cause", "currency",
)  # fmt: skip
"""One row each. The file is written in this order, which makes it half as large."""


def costs_sql(with_billing_mode: bool) -> str:
    billing_mode = "teams.billing_mode," if with_billing_mode else ""
    return f"""
        with lines as (
            select
                usage_date, team_id, project_id, user_name, job_key, pool_id, component, allocation_kind, idle_cause,
                currency, cost_status, amount as cost, null as gpu_hours
            from core.fct_cost_allocations
            union all
            select
                usage_date, team_id, project_id, user_name, job_key, pool_id, 'gpu', 'direct', null,
                currency, null, 0, gpu_hours
            from reporting.rpt_job_receipts
            where gpu_hours is not null
        ),

        payers as (
            select
                usage_date, team_id, project_id, user_name, job_key, pool_id, component, allocation_kind, idle_cause,
                currency,
                -- provisional as soon as a part of it is
                max(cost_status) as cost_status,
                sum(cost) as cost,
                sum(gpu_hours) as gpu_hours
            from lines
            group by all
        )

        select
            payers.usage_date,
            strftime(payers.usage_date, '%Y') as usage_year,
            strftime(payers.usage_date, '%Y-%m') as usage_month,
            strftime(payers.usage_date, '%Y-%m-%d') as usage_day,
            coalesce(roots.team_name, teams.root_team_id, payers.team_id) as organisation,
            coalesce(teams.team_name, payers.team_id) as team_name,
            teams.team_path,
            teams.cost_centre,
            {billing_mode}
            coalesce(projects.project_name, payers.project_id, '(no project)') as project_name,
            coalesce(payers.user_name, '(nobody)') as user_name,
            coalesce(jobs.job_name || ' [' || payers.job_key || ']', payers.job_key, '(no job)') as job,
            jobs.job_name,
            jobs.job_id,
            jobs.workload_class,
            coalesce(pools.pool_name, payers.pool_id) as pool_name,
            pools.pool_kind,
            pools.cluster_id,
            pools.gpu_model,
            pools.purchase_class,
            payers.component,
            payers.allocation_kind,
            payers.idle_cause,
            payers.cost_status,
            payers.currency,
            payers.cost,
            payers.gpu_hours,
            payers.team_id,
            teams.root_team_id,
            payers.project_id,
            payers.job_key,
            payers.pool_id
        from payers
        left join core.fct_team_days as teams
            on payers.usage_date = teams.usage_date and payers.team_id = teams.team_id
        left join core.fct_team_days as roots
            on teams.usage_date = roots.usage_date and teams.root_team_id = roots.team_id
        left join core.fct_project_days as projects
            on payers.usage_date = projects.usage_date and payers.project_id = projects.project_id
        left join core.fct_pool_days as pools
            on payers.usage_date = pools.usage_date and payers.pool_id = pools.pool_id
        left join core.fct_job_days as jobs
            on payers.usage_date = jobs.usage_date and payers.job_key = jobs.job_key
    """


UNTIED = f"""
    with here as (
        select currency, sum(cost) as cost, sum(gpu_hours) as gpu_hours from {TABLE} group by 1
    ),

    paid as (
        select currency, sum(amount) as cost from core.fct_cost_allocations group by 1
    ),

    held as (
        select currency, sum(gpu_hours) as gpu_hours from reporting.rpt_job_receipts group by 1
    )

    select currency, here.cost, paid.cost, here.gpu_hours, held.gpu_hours
    from here
    full join paid using (currency)
    full join held using (currency)
    where here.cost is distinct from paid.cost or here.gpu_hours is distinct from held.gpu_hours
"""
"""Currencies whose sums are not those of the marts: none, unless a day names a team, project, pool or job twice."""
