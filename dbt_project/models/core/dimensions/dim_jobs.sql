-- grain: one row per job run, as the newest built day knows it
select
    job_key,
    job_id,
    array_job_id,
    cluster_id,
    scheduler,
    team_id,
    project_id,
    user_name,
    account,
    namespace,
    partition_name,
    qos,
    job_name,
    state,
    exit_code,
    submit_at,
    min(start_at) over (partition by job_key) as start_at,
    max(end_at) over (partition by job_key) as end_at,
    part_count,
    gpus,
    is_running,
    is_request_missing,
    payer_rule
from {{ ref('fct_job_days') }}
qualify row_number() over (partition by job_key order by usage_date desc) = 1
