-- One month of all teams: its lines, the lines of the month before, and what today's books say about it.

-- grain: one row per line of an invoice or statement
create or replace temp table month_lines as
select *, true as is_closed from closed_lines where period_date = $month
union all by name
select *, false as is_closed from open_lines where period_date = $month;

create or replace temp table lines_before as
select team_id, currency, project_id, project_name, component, allocation_kind, invoiced_amount, reporting_amount
from closed_lines
where period_date = $before
union all
select team_id, currency, project_id, project_name, component, allocation_kind, invoiced_amount, reporting_amount
from open_lines
where period_date = $before;

create or replace temp table spans as
select
    count(*) filter (usage_date >= $month) as day_count,
    nullif(count(*) filter (usage_date < $month), 0) as day_count_before,
    max(usage_date) as last_date
from marts.core.fct_days
where usage_date >= $before and usage_date < $next;

-- grain: one row per payer, pool, component, kind, reason and currency
create or replace temp table books as
select
    team_id, project_id, pool_id, component, currency, allocation_kind, idle_cause, reason, policy_row,
    counterparty_team_id,
    sum(amount) as amount,
    min(usage_date) as first_date,
    max(usage_date) as last_date
from marts.core.fct_cost_allocations
where usage_date >= $month and usage_date < $next
group by all;

create or replace temp table team_books as
select team_id, currency, sum(amount) as amount from books group by all;

-- What a job was and held, whatever the currencies it is billed in: hours stand in the rows of one of them only.
-- grain: one row per job, team and project
create or replace temp table job_facts as
select
    team_id, project_id, job_key,
    max(project_name) as project_name,
    arg_max(job_name, usage_date) as job_name,
    arg_max(user_name, usage_date) as user_name,
    arg_max(workload_class, usage_date) as workload_class,
    arg_max(state, usage_date) as state,
    string_agg(distinct pool_name, ', ' order by pool_name) as pool_names,
    sum(gpu_hours) as gpu_hours,
    cast(sum(busy_share * gpu_hours) as double)
    / nullif(cast(sum(gpu_hours) filter (busy_share is not null) as double), 0) as busy_share
from marts.reporting.rpt_job_receipts
where usage_date >= $month and usage_date < $next
group by all;

-- grain: one row per job, team, project and currency
create or replace temp table jobs as
with costs as (
    select
        team_id, project_id, job_key, currency,
        sum(total_cost) as total_cost,
        sum(held_idle_cost) as held_idle_cost
    from marts.reporting.rpt_job_receipts
    where usage_date >= $month and usage_date < $next
    group by all
)

select
    *,
    row_number() over (partition by team_id, currency order by total_cost desc, job_key, project_id) as cost_rank,
    -- Waste needs telemetry: without it there is none to rank.
    if(
        held_idle_cost > 0,
        row_number() over (
            partition by team_id, currency order by held_idle_cost desc nulls last, job_key, project_id
        ),
        null
    ) as waste_rank
from costs;

-- grain: one row per pool, component and currency
create or replace temp table pool_rates as
select
    pool_id, component, currency,
    string_agg(distinct method, ', ' order by method) as methods,
    round(cast(sum(cost) as double) / nullif(cast(sum(capacity_hours) as double), 0), 6) as mean_rate,
    min(rate) as lowest_rate,
    max(rate) as highest_rate
from marts.core.fct_pool_hours
where usage_date >= $month and usage_date < $next and rate is not null
group by all;
