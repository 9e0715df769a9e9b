-- grain: one row per job run and UTC day that it overlaps, with what the scheduler said of it
with job_parts as (
    select
        job_parts.*,
        -- A job runs while any of its parts does; after that it is what became of its last part.
        first_value(state) over (
            partition by usage_date, job_key
            order by case when is_running then 0 else 1 end, end_ms desc, part_id desc
        ) as job_state
    from {{ ref('int_job_parts') }} as job_parts
),

classes as (
    select * from {{ ref('int_job_classes') }}
),

jobs as (
    select
        usage_date,
        job_key,
        min(job_id) as job_id,
        min(array_job_id) as array_job_id,
        min(cluster_id) as cluster_id,
        min(scheduler) as scheduler,
        min(team_id) as team_id,
        min(project_id) as project_id,
        min(payer_user_name) as user_name,
        min(account) as account,
        min(namespace) as namespace,
        min(payer_partition_name) as partition_name,
        min(qos) as qos,
        min(job_name) as job_name,
        min(job_state) as state,
        min(exit_code) as exit_code,
        min(payer_rule) as payer_rule,
        min(submit_at) as submit_at,
        min(start_at) as start_at,
        max(end_at) as end_at,
        min(start_ms) as start_ms,
        max(end_ms) as end_ms,
        count(*) as part_count,
        max(case when is_running then 1 else 0 end) = 1 as is_running,
        max(case when is_cpu_request_missing or is_memory_request_missing then 1 else 0 end) = 1 as is_request_missing,
        sum(gpu_units) as gpu_units
    from job_parts
    group by usage_date, job_key
),

final as (
    select
        jobs.*,
        classes.workload_class,
        classes.workload_rule,
        classes.is_class_self_declared,
        classes.checkpoint_interval_ms
    from jobs
    inner join classes on jobs.usage_date = classes.usage_date and jobs.job_key = classes.job_key
)

select * from final
