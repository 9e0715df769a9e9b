-- What an hour that the team held came to in the end, with everything that was charged for the pool.
select
    team_id, currency, pool_id, pool_name, measure, used_hours, charged_cost, effective_rate, pool_rate
from marts.reporting.rpt_fairness
where month_date = $month and used_hours > 0
order by team_id, pool_name, pool_id, currency desc
