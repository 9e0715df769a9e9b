-- What the month's money was for: kinds of cost and causes of idle, projects and components, and the way through the pools.

-- grain: one row per month, team and currency
create temp table team_months as
select
    month_date,
    team_id,
    currency,
    sum(total_cost) as total_cost,
    sum(direct_cost) as direct_cost,
    sum(idle_cost) as idle_cost,
    sum(shared_cost) as shared_cost,
    sum(burst_cost) as burst_cost,
    sum(outcome_credit_cost) as outcome_credit_cost,
    sum(adjustment_cost) as adjustment_cost,
    sum(unattributed_cost) as unattributed_cost,
    sum(idle_unscheduled_cost) as idle_unscheduled_cost,
    sum(idle_reserved_cost) as idle_reserved_cost,
    sum(idle_down_cost) as idle_down_cost,
    sum(idle_stranded_cost) as idle_stranded_cost,
    sum(total_cost) filter (cost_status <> 'final') as open_cost
from marts.reporting.rpt_team_costs_daily
where usage_date in (select usage_date from days)
group by all;

-- Hours have no currency: they are summed over all of them.
-- grain: one row per month and team
create temp table team_hours as
select
    month_date,
    team_id,
    sum(gpu_hours) as gpu_hours,
    sum(sampled_gpu_hours) as sampled_gpu_hours,
    sum(busy_gpu_hours) as busy_gpu_hours
from marts.reporting.rpt_team_costs_daily
where usage_date in (select usage_date from days)
group by all;

-- grain: one row per month, team, project, component, pool and currency
create temp table costs as
select month_date, team_id, project_id, component, pool_id, currency, sum(total_cost) as total_cost
from marts.reporting.rpt_team_costs_daily
where usage_date in (select usage_date from days)
group by all
having sum(total_cost) <> 0;

-- The bill is known by provider; from the component on, money follows the allocations. Both sides have one sum.
-- grain: one row per month, provider, component and currency
create temp table bills as
select days.month_date, billed.provider, billed.component, billed.currency, sum(billed.allocatable_cost) as allocatable_cost
from marts.core.fct_billed_costs as billed
inner join days on billed.usage_date = days.usage_date
group by all
having sum(billed.allocatable_cost) <> 0;
