-- Receipts of the jobs that cost or wasted most, and what the others of their project come to.

-- grain: one row per month, job, team, project and currency
create temp table job_costs as
select
    month_date,
    job_key,
    team_id,
    project_id,
    currency,
    sum(gpu_cost) as gpu_cost,
    sum(cpu_cost) as cpu_cost,
    sum(memory_cost) as memory_cost,
    sum(energy_cost) as energy_cost,
    sum(other_direct_cost) as other_direct_cost,
    sum(idle_cost) as idle_cost,
    sum(burst_cost) as burst_cost,
    sum(outcome_credit_cost) as outcome_credit_cost,
    sum(adjustment_cost) as adjustment_cost,
    sum(total_cost) as total_cost,
    sum(held_idle_cost) as held_idle_cost
from marts.reporting.rpt_job_receipts
where usage_date in (select usage_date from days)
group by all;

-- grain: one row per month, team, project and currency
create temp table project_jobs as
select
    month_date,
    team_id,
    project_id,
    currency,
    count(*) as job_count,
    sum(total_cost) as total_cost,
    sum(held_idle_cost) as held_idle_cost
from job_costs
group by all;

-- A job is listed when it is among the dearest of its project or the most wasteful of its team or of all.
-- Waste needs telemetry: without it there is none to rank.
create temp table listed_jobs as
with ranked as (
    select
        *,
        row_number() over (
            partition by month_date, team_id, project_id, currency order by total_cost desc, job_key
        ) as cost_rank,
        if(
            held_idle_cost > 0,
            row_number() over (
                partition by month_date, team_id, currency order by held_idle_cost desc nulls last, job_key, project_id
            ),
            null
        ) as team_waste_rank,
        if(
            held_idle_cost > 0,
            row_number() over (
                partition by month_date, currency order by held_idle_cost desc nulls last, job_key, team_id, project_id
            ),
            null
        ) as waste_rank
    from job_costs
)

select *
from ranked
where cost_rank <= $most_jobs_of_a_project or team_waste_rank <= $worst_jobs or waste_rank <= $worst_jobs;

-- What a listed job was and held, whatever the currency.
-- grain: one row per month, job, team and project
create temp table job_facts as
select
    receipts.month_date,
    receipts.job_key,
    receipts.team_id,
    receipts.project_id,
    arg_max(receipts.job_name, receipts.usage_date) as job_name,
    arg_max(receipts.user_name, receipts.usage_date) as user_name,
    arg_max(receipts.workload_class, receipts.usage_date) as workload_class,
    arg_max(receipts.state, receipts.usage_date) as state,
    any_value(receipts.cluster_id) as cluster_id,
    list_sort(list(distinct receipts.pool_id)) as pool_ids,
    min(receipts.start_at) as start_at,
    max(receipts.end_at) as end_at,
    sum(receipts.gpu_hours) as gpu_hours,
    sum(receipts.core_hours) as core_hours,
    sum(receipts.memory_gib_hours) as memory_gib_hours,
    sum(receipts.energy_kwh) as energy_kwh,
    cast(sum(receipts.busy_share * receipts.gpu_hours) as double)
    / nullif(cast(sum(receipts.gpu_hours) filter (receipts.busy_share is not null) as double), 0) as busy_share
from marts.reporting.rpt_job_receipts as receipts
where receipts.usage_date in (select usage_date from days) and receipts.job_key in (select job_key from listed_jobs)
group by all;

-- grain: one row per listed job, month, team, project and currency
create temp table receipts as
select listed_jobs.*, job_facts.* exclude (month_date, job_key, team_id, project_id)
from listed_jobs
inner join job_facts
    on listed_jobs.month_date = job_facts.month_date
    and listed_jobs.job_key = job_facts.job_key
    and listed_jobs.team_id = job_facts.team_id
    and listed_jobs.project_id is not distinct from job_facts.project_id;

-- What of a project's cost its jobs carry, and what is on none of them.
-- grain: one row per month, team, project and currency
create temp table project_months as
with totals as (
    select month_date, team_id, project_id, currency, sum(total_cost) as total_cost
    from costs
    group by all
)

select
    totals.*,
    coalesce(project_jobs.total_cost, 0) as on_jobs_cost,
    totals.total_cost - coalesce(project_jobs.total_cost, 0) as rest_cost,
    coalesce(project_jobs.job_count, 0) as job_count,
    project_jobs.held_idle_cost
from totals
left join project_jobs
    on totals.month_date = project_jobs.month_date
    and totals.team_id = project_jobs.team_id
    and totals.project_id is not distinct from project_jobs.project_id
    and totals.currency = project_jobs.currency;
