-- grain: one row per node-hour and who draws energy in it: a job, or an idle cause; the weight of the energy component
-- Covered node-hours use what was measured. Others use the pool-day's mean energy per held and per idle GPU time. A
-- pool-day without telemetry follows its GPU time, or its CPU time if it has no GPUs.
{%- set node_hour = ['usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}

with node_hours as (
    select * from {{ ref('int_node_hours') }}
),

job_node_hours as (
    select * from {{ ref('int_job_node_hours') }}
),

measured as (
    select * from {{ ref('int_energy_measured') }}
),

consumers as (
    select
        {{ node_hour | join(', ') }},
        'used' as cause,
        job_key,
        sum(gpu_held) as gpu_time,
        sum(cpu_held) as cpu_time
    from job_node_hours
    group by {{ node_hour | join(', ') }}, job_key
    {%- for cause in ['down', 'reserved', 'stranded', 'unscheduled'] %}
    union all
    select
        {{ node_hour | join(', ') }},
        '{{ cause }}' as cause,
        cast(null as {{ dbt.type_string() }}) as job_key,
        gpu_{{ cause }} as gpu_time,
        cpu_{{ cause }} as cpu_time
    from node_hours
    {%- endfor %}
),

covered as (
    select distinct {{ node_hour | join(', ') }}
    from measured
),

joined as (
    select
        consumers.*,
        covered.node_name is not null as is_covered,
        measured.energy
    from consumers
    left join covered on {{ equal_on('consumers', 'covered', node_hour) }}
    left join measured
        on
            {{ equal_on('consumers', 'measured', node_hour) }}
            and consumers.cause = measured.cause
            and coalesce(consumers.job_key, '') = coalesce(measured.job_key, '')
),

pool_days as (
    select
        usage_date,
        pool_id,
        sum(gpu_time) as gpu_time,
        sum(case when is_covered and cause = 'used' then gpu_time else 0 end) as held_time,
        sum(case when is_covered and cause = 'used' then coalesce(energy, 0) else 0 end) as held_energy,
        sum(case when is_covered and cause <> 'used' then gpu_time else 0 end) as idle_time,
        sum(case when is_covered and cause <> 'used' then coalesce(energy, 0) else 0 end) as idle_energy
    from joined
    group by usage_date, pool_id
),

rated as (
    select
        joined.*,
        pool_days.held_energy + pool_days.idle_energy > 0 and pool_days.held_time + pool_days.idle_time > 0 as is_measured,
        pool_days.gpu_time > 0 as has_gpu_time,
        case
            when joined.cause = 'used' and pool_days.held_time > 0 then pool_days.held_energy
            when joined.cause <> 'used' and pool_days.idle_time > 0 then pool_days.idle_energy
            else pool_days.held_energy + pool_days.idle_energy
        end as mean_energy,
        case
            when joined.cause = 'used' and pool_days.held_time > 0 then pool_days.held_time
            when joined.cause <> 'used' and pool_days.idle_time > 0 then pool_days.idle_time
            else pool_days.held_time + pool_days.idle_time
        end as mean_time
    from joined
    inner join pool_days on joined.usage_date = pool_days.usage_date and joined.pool_id = pool_days.pool_id
),

final as (
    select
        {{ node_hour | join(', ') }},
        cause,
        job_key,
        is_measured,
        case
            when is_measured and is_covered then coalesce(energy, 0)
            when is_measured then {{ share('gpu_time', 'mean_energy', 'mean_time', 0) }}
            when has_gpu_time then gpu_time
            else cpu_time
        end as weight
    from rated
)

select * from final
