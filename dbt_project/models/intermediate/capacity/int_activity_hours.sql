-- grain: one row per node, pool, hour and named workload part: how active it kept the GPUs, in pools whose policy asks
-- Only those nodes' samples are read: most policies do not weigh intensity.
{%- set gauges = ['sm', 'tensor'] %}

with asking_pools as (
    select distinct
        usage_date,
        pool_id
    from {{ ref('int_allocation_policies') }}
    where method = 'complexity' and intensity_metric is not null
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
    samples.part_id
from {{ ref('stg_telemetry__gpu_samples') }} as samples
inner join stay_hours
    on
        samples.usage_date = stay_hours.usage_date
        and samples.cluster_id = stay_hours.cluster_id
        and samples.node_name = stay_hours.node_name
        and {{ hour_start_ms('samples.sampled_ms') }} = stay_hours.hour_ms
        and samples.sampled_ms >= stay_hours.start_ms
        and samples.sampled_ms < stay_hours.end_ms
where samples.part_id is not null
group by
    stay_hours.usage_date, stay_hours.hour_ms, stay_hours.cluster_id, stay_hours.node_name, stay_hours.pool_id, samples.part_id
