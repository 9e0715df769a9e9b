-- grain: one row per part of a job run and UTC day, with what the scheduler said of it, its payer and workload class
-- The parts of one job have one payer, partition and class, those of the first part, however their own labels differ.
{%- set of_first_part = [
    'cluster_id', 'account', 'user_name', 'namespace', 'labels', 'partition_name', 'qos', 'job_name', 'gpu_units',
    'time_limit_ms', 'checkpoint_interval_ms',
] %}
{%- set names_of_payer = ['cluster_id', 'account', 'user_name', 'namespace', 'labels'] %}
{%- set names_of_class = ['cluster_id', 'partition_name', 'qos', 'job_name', 'labels', 'gpu_units', 'time_limit_ms'] %}

with days as (
    select * from {{ ref('int_days') }}
),

payers as (
    select * from {{ ref('int_payers') }}
    where path is null and tags is null
),

classes as (
    select * from {{ ref('int_job_classes') }}
),

jobs_of_several_parts as (
    select * from {{ ref('int_jobs_of_several_parts') }}
),

parts_of_several as (
    select
        jobs.*,
        row_number() over (partition by jobs.usage_date, jobs.job_key order by jobs.start_ms, jobs.part_id) as part_order,
        jobs_of_several_parts.part_count
    from {{ ref('stg_scheduler__jobs') }} as jobs
    inner join jobs_of_several_parts
        on jobs.usage_date = jobs_of_several_parts.usage_date and jobs.job_key = jobs_of_several_parts.job_key
),

parts as (
    select
        {%- for column in of_first_part %}
        jobs.{{ column }} as first_{{ column }},
        {%- endfor %}
        jobs.*,
        1 as part_order,
        1 as part_count
    from {{ ref('stg_scheduler__jobs') }} as jobs
    left join jobs_of_several_parts
        on jobs.usage_date = jobs_of_several_parts.usage_date and jobs.job_key = jobs_of_several_parts.job_key
    where jobs_of_several_parts.job_key is null
    union all
    select
        {%- for column in of_first_part %}
        first_parts.{{ column }} as first_{{ column }},
        {%- endfor %}
        parts_of_several.*
    from parts_of_several
    inner join parts_of_several as first_parts
        on
            parts_of_several.usage_date = first_parts.usage_date
            and parts_of_several.job_key = first_parts.job_key
            and first_parts.part_order = 1
),

final as (
    select
        parts.usage_date,
        parts.part_order,
        parts.part_count,
        parts.cluster_id,
        parts.scheduler,
        parts.job_key,
        parts.job_id,
        parts.part_id,
        parts.array_job_id,
        parts.account,
        parts.namespace,
        parts.partition_name,
        parts.qos,
        parts.job_name,
        parts.state,
        parts.exit_code,
        parts.node_names,
        parts.gpu_units,
        parts.cpu_millicores,
        parts.memory_mib,
        parts.bytes_out,
        parts.suspended_ms,
        parts.is_cpu_request_missing or parts.is_memory_request_missing as is_request_missing,
        parts.is_running,
        parts.submit_at,
        parts.start_at,
        parts.end_at,
        parts.start_ms,
        parts.end_ms,
        greatest(parts.start_ms, days.day_start_ms) as part_start_ms,
        least(parts.end_ms, days.day_end_ms) as part_end_ms,
        coalesce(payers.team_id, 'unattributed') as team_id,
        payers.project_id,
        parts.first_user_name as payer_user_name,
        parts.first_partition_name as payer_partition_name,
        payers.payer_rule,
        classes.workload_class,
        classes.workload_rule,
        classes.is_class_self_declared,
        parts.first_checkpoint_interval_ms as checkpoint_interval_ms
    from parts
    inner join days on parts.usage_date = days.usage_date
    inner join classes
        on
            parts.usage_date = classes.usage_date
            and {{ same_values('parts.first_', 'classes.', names_of_class) }}
    left join payers
        on
            parts.usage_date = payers.usage_date
            and {{ same_values('parts.first_', 'payers.', names_of_payer) }}
)

select * from final
