-- grain: one row per node, pool, hour and part of a job run: how active it kept the GPUs, in pools whose policy asks
-- Only those nodes' samples are read: most policies do not weigh intensity. A sample belongs to the run that it names and
-- falls into: a job that is requeued keeps its name.
{%- set gauges = ['sm', 'tensor'] %}

with asking_pools as (
    select distinct
        usage_date,
        pool_id
    from {{ ref('int_allocation_policies') }}
    where method = 'complexity' and intensity_metric is not null
),

job_parts as (
    select * from {{ ref('int_job_parts') }}
),

stay_hours as (
    select stay_hours.*
    from {{ ref('int_stay_hours') }} as stay_hours
    inner join asking_pools
        on stay_hours.usage_date = asking_pools.usage_date and stay_hours.pool_id = asking_pools.pool_id
)

select
    stay_hours.usage_date,
    stay_hours.hour_ms,
    stay_hours.cluster_id,
    stay_hours.node_name,
    stay_hours.pool_id,
    {%- for gauge in gauges %}
    sum(case when samples.{{ gauge }}_millipercent is not null then samples.interval_ms else 0 end) as {{ gauge }}_sampled_ms,
    sum(samples.{{ gauge }}_millipercent * samples.interval_ms) as {{ gauge }}_millipercent_ms,
    {%- endfor %}
    job_parts.part_number
from {{ ref('stg_telemetry__gpu_samples') }} as samples
inner join stay_hours
    on
        samples.usage_date = stay_hours.usage_date
        and samples.cluster_id = stay_hours.cluster_id
        and samples.node_name = stay_hours.node_name
        and {{ floor_divide('samples.sampled_us', 3600000000) }} = {{ floor_divide('stay_hours.hour_ms', 3600000) }}
        and samples.sampled_us >= 1000 * stay_hours.start_ms
        and samples.sampled_us < 1000 * stay_hours.end_ms
inner join job_parts
    on
        samples.usage_date = job_parts.usage_date
        and samples.cluster_id = job_parts.cluster_id
        and samples.part_id = job_parts.part_id
        and samples.sampled_us >= 1000 * job_parts.part_start_ms
        and samples.sampled_us < 1000 * job_parts.part_end_ms
group by
    stay_hours.usage_date, stay_hours.hour_ms, stay_hours.cluster_id, stay_hours.node_name, stay_hours.pool_id, job_parts.part_number
