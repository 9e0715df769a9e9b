-- grain: one row per UTC day, pool, hourly component, currency and job: its direct cost
select
    usage_date,
    pool_id,
    component,
    currency,
    team_id,
    project_id,
    user_name,
    job_key,
    driver,
    sum(quantity) as quantity,
    cast(sum(amount) as numeric(38, 9)) as amount
from {{ ref('int_job_hour_costs') }}
group by usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, driver
