-- grain: one row per job run and UTC day that it overlaps: who pays for it
-- By the run's number, which grows in the order in which splits go through payers: team, project, user, job.
select
    usage_date,
    job_number,
    job_key,
    cluster_id,
    partition_name,
    team_id,
    project_id,
    payer_user_name as user_name,
    workload_class,
    workload_rule,
    is_class_self_declared
from {{ ref('int_job_parts') }}
where part_order = 1
