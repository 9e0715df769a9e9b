{{ config(meta={"dagster": {"ref": {"name": "fct_job_usage_hourly"}}}) }}
-- law 6, no data is not zero: a job's busy share is there exactly where telemetry sampled it, and is a share
with sampled as (
    select distinct
        job_hours.hour_ms,
        job_hours.node_name,
        job_hours.pool_id,
        payers.job_key
    from {{ ref('int_gpu_hours') }} as gpu_hours
    inner join {{ ref('int_job_node_hours') }} as job_hours
        on
            gpu_hours.hour_ms = job_hours.hour_ms
            and gpu_hours.cluster_id = job_hours.cluster_id
            and gpu_hours.node_name = job_hours.node_name
            and gpu_hours.pool_id = job_hours.pool_id
    inner join {{ ref('int_job_parts') }} as job_parts
        on job_hours.part_number = job_parts.part_number and gpu_hours.part_id = job_parts.part_id
    inner join {{ ref('int_job_payers') }} as payers on job_hours.job_number = payers.job_number
    where {{ in_window('gpu_hours.usage_date') }} and gpu_hours.busy_sampled_ms > 0
),

usage_hours as (
    select * from {{ ref('fct_job_usage_hourly') }}
    where {{ in_window('usage_date') }}
)

select
    usage_hours.usage_date,
    usage_hours.hour_at,
    usage_hours.job_key,
    usage_hours.node_name,
    usage_hours.pool_id,
    usage_hours.busy_share,
    usage_hours.telemetry_coverage_share,
    sampled.job_key is not null as is_sampled
from usage_hours
left join sampled
    on
        {{ milliseconds('usage_hours.hour_at') }} = sampled.hour_ms
        and usage_hours.job_key = sampled.job_key
        and usage_hours.node_name = sampled.node_name
        and usage_hours.pool_id = sampled.pool_id
where
    (usage_hours.busy_share is null) <> (sampled.job_key is null)
    or usage_hours.busy_share < 0
    or usage_hours.busy_share > 1
    or usage_hours.telemetry_coverage_share < 0
    or usage_hours.telemetry_coverage_share > 1
