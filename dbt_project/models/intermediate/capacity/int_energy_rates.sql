-- grain: one row per UTC day and pool: whether its energy was measured, and the mean energy per held and per idle GPU time
-- Node-hours of which too little was sampled use these means. A pool-day without telemetry follows its GPU time, or its CPU
-- time if it has no GPUs.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set idle_time = 'node_hours.gpu_down + node_hours.gpu_reserved + node_hours.gpu_stranded + node_hours.gpu_unscheduled' %}

with node_hours as (
    select * from {{ ref('int_node_hours') }}
),

node_energy as (
    select * from {{ ref('int_node_energy') }}
),

pool_days as (
    select
        node_hours.usage_date,
        node_hours.pool_id,
        sum(node_hours.gpu_held + {{ idle_time }}) as gpu_time,
        sum(case when node_energy.node_name is not null then node_hours.gpu_held else 0 end) as held_time,
        sum(case when node_energy.node_name is not null then {{ idle_time }} else 0 end) as idle_time,
        sum(coalesce(node_energy.held_energy, 0)) as held_energy,
        sum(coalesce(node_energy.idle_energy, 0)) as idle_energy
    from node_hours
    left join node_energy on {{ equal_on('node_hours', 'node_energy', node_hour) }}
    group by node_hours.usage_date, node_hours.pool_id
),

final as (
    select
        {%- for use in ['held', 'idle'] %}
        case when {{ use }}_time > 0 then {{ use }}_energy else held_energy + idle_energy end as {{ use }}_energy,
        case when {{ use }}_time > 0 then {{ use }}_time else held_time + idle_time end as {{ use }}_time,
        {%- endfor %}
        gpu_time > 0 as has_gpu_time,
        held_energy + idle_energy > 0 and held_time + idle_time > 0 as is_measured,
        usage_date,
        pool_id
    from pool_days
)

select * from final
