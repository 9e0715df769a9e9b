-- Each hour's used cost, split over the jobs that held the component, by what they weigh.
create or replace temp table direct_parts as
with weighted as (
    select
        held.*,
        hours.currency,
        hours.used_cost as whole
    from hours
    inner join held using (usage_date, hour_at, pool_id, component)
    where hours.used_cost <> 0
),

running as (
    select
        weighted.*,
        sum(weight) over (
            partition by hour_at, pool_id, component, currency order by team_id, project_id, user_name, job_key
            rows unbounded preceding
        ) as running,
        sum(weight) over (partition by hour_at, pool_id, component, currency) as total
    from weighted
)

select
    running.*,
    part(whole, weight, running, total) as amount
from running;
