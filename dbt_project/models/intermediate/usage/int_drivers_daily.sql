-- grain: one row per UTC day, pool, driver and payer (down to the job)
select
    usage_date,
    pool_id,
    driver,
    team_id,
    project_id,
    user_name,
    job_key,
    is_measured,
    sum(quantity) as quantity,
    sum(weight) as weight
from {{ ref('int_drivers') }}
group by usage_date, pool_id, driver, team_id, project_id, user_name, job_key, is_measured
