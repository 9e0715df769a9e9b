-- grain: one row per job run and UTC day that it overlaps, with what the scheduler said of it
{%- set of_all_parts = [
    'cluster_id', 'scheduler', 'job_id', 'array_job_id', 'account', 'namespace', 'payer_partition_name', 'qos',
    'job_name', 'exit_code', 'submit_at', 'start_at', 'start_ms', 'team_id', 'project_id', 'payer_user_name', 'payer_rule',
    'workload_class', 'workload_rule', 'is_class_self_declared', 'checkpoint_interval_ms',
] %}

with parts_of_several as (
    select
        described_parts.*,
        -- A job runs while any of its parts does; after that it is what became of its last part.
        first_value(state) over (
            partition by usage_date, job_key order by case when is_running then 0 else 1 end, end_ms desc, part_id desc
        ) as job_state
    from {{ ref('int_described_parts') }} as described_parts
    where part_count > 1
),

jobs as (
    select
        usage_date,
        job_key,
        {{ of_all_parts | join(', ') }},
        state,
        end_at,
        end_ms,
        part_count,
        is_running,
        is_request_missing,
        cast(gpu_units as int64) as gpu_units
    from {{ ref('int_described_parts') }}
    where part_count = 1
    union all
    select
        usage_date,
        job_key,
        {%- for column in of_all_parts %}
        min({{ column }}) as {{ column }},
        {%- endfor %}
        min(job_state) as state,
        max(end_at) as end_at,
        max(end_ms) as end_ms,
        part_count,
        max(case when is_running then 1 else 0 end) = 1 as is_running,
        max(case when is_request_missing then 1 else 0 end) = 1 as is_request_missing,
        cast(sum(gpu_units) as int64) as gpu_units
    from parts_of_several
    group by usage_date, job_key, part_count
),

final as (
    select
        jobs.*,
        payer_partition_name as partition_name,
        payer_user_name as user_name
    from jobs
)

select * from final
