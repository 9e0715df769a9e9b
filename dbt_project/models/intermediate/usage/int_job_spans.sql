-- grain: one row per job run, pool and hour in which it was there on several nodes or several times: from when to when
-- Where all its stretches hold one instant, they are one stretch; otherwise it came and went within the hour.
select
    usage_date,
    hour_ms,
    pool_id,
    job_number,
    min(node_name) as first_node_name,
    min(start_ms) as start_ms,
    max(end_ms) as end_ms,
    max(start_ms) <= min(end_ms) as is_one_stretch
from {{ ref('int_job_node_hours') }}
group by usage_date, hour_ms, pool_id, job_number
having count(*) > 1
