-- What the pages are about: the days of the last months, and what each cost. `marts` is the published database.
-- A scope is a team, or everything (null): every figure is worked out for both by the same statement.

create temp table days as
select usage_date, month_date
from marts.core.dim_dates
where month_date > (select max(month_date) from marts.core.dim_dates) - to_months($months);

-- grain: one row per day, team and currency
create temp table team_days as
select usage_date, month_date, team_id, currency, sum(total_cost) as total_cost
from marts.reporting.rpt_team_costs_daily
where usage_date in (select usage_date from days)
group by all;
