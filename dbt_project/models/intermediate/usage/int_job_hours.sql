-- grain: one row per job run, node, pool and hour: what its parts held there, and what the samples that name them add up to
-- Energy of samples that name a part belongs to its job, if that holds GPUs there. A requeued job can run twice in one hour
-- under the same name; its runs share what was sampled by GPU time.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set part = ['usage_date', 'cluster_id', 'part_id'] %}

with node_hours as (
    select * from {{ ref('int_job_node_hours') }}
),

gpu_hours as (
    select * from {{ ref('int_gpu_hours') }}
    where part_id is not null
),

activity as (
    select * from {{ ref('int_activity_hours') }}
),

held as (
    select
        node_hours.usage_date,
        {{ qualified('node_hours', node_hour) }},
        node_hours.job_number,
        max(node_hours.gpu_model) as gpu_model,
        max(node_hours.part_held_ms) as held_ms,
        cast(sum(node_hours.gpu_device_ms) as int64) as gpu_device_ms,
        cast(sum(node_hours.gpu_held) as int64) as gpu_held,
        cast(sum(node_hours.cpu_held) as int64) as cpu_held,
        cast(sum(node_hours.memory_held) as int64) as memory_held,
        {%- for gauge in ['sm', 'tensor'] %}
        sum(activity.{{ gauge }}_sampled_ms) as {{ gauge }}_sampled_ms,
        sum(activity.{{ gauge }}_millipercent_ms) as {{ gauge }}_millipercent_ms,
        {%- endfor %}
        cast(sum(gpu_hours.busy_sampled_ms) as int64) as busy_sampled_ms,
        cast(sum(gpu_hours.busy_millipercent_ms) as int64) as busy_millipercent_ms
    from node_hours
    left join gpu_hours
        on
            {{ equal_on('node_hours', 'gpu_hours', node_hour) }}
            and node_hours.part_id = gpu_hours.part_id
            and node_hours.is_first_stretch
    left join activity
        on
            {{ equal_on('node_hours', 'activity', node_hour) }}
            and node_hours.part_number = activity.part_number
            and node_hours.is_first_stretch
    group by node_hours.usage_date, {{ qualified('node_hours', node_hour) }}, node_hours.job_number
),

jobs_of_parts as (
    select distinct
        {{ part | join(', ') }},
        job_number,
        job_key
    from {{ ref('int_job_parts') }}
),

names_of_several as (
    select {{ part | join(', ') }}
    from jobs_of_parts
    group by {{ part | join(', ') }}
    having count(*) > 1
),

named as (
    select
        {{ qualified('gpu_hours', node_hour) }},
        gpu_hours.part_id,
        jobs_of_parts.job_number,
        jobs_of_parts.job_key,
        names_of_several.part_id is not null as is_of_several,
        gpu_hours.energy_microjoules
    from gpu_hours
    inner join jobs_of_parts on {{ equal_on('gpu_hours', 'jobs_of_parts', part) }}
    left join names_of_several on {{ equal_on('jobs_of_parts', 'names_of_several', part) }}
    where gpu_hours.energy_sampled_ms > 0
),

shared as (
    select
        {{ qualified('named', node_hour) }},
        named.part_id,
        named.job_number,
        named.job_key,
        named.energy_microjoules,
        held.gpu_held
    from named
    inner join held on {{ equal_on('named', 'held', node_hour + ['job_number']) }}
    where named.is_of_several and held.gpu_held > 0
),

shared_split as (
    {{ split('shared', ['energy_microjoules'], 'gpu_held', by=node_hour + ['part_id'], order_by=['job_key'], scale=0) }}
),

named_energy as (
    select
        {{ node_hour | join(', ') }},
        job_number,
        sum(energy_microjoules) as energy_microjoules
    from (
        select {{ node_hour | join(', ') }}, job_number, energy_microjoules
        from named
        where not is_of_several
        union all
        select {{ node_hour | join(', ') }}, job_number, energy_microjoules_part as energy_microjoules
        from shared_split
    ) as energy_of_jobs
    group by {{ node_hour | join(', ') }}, job_number
),

final as (
    select
        held.*,
        case when held.gpu_held > 0 then named_energy.energy_microjoules end as named_energy
    from held
    left join named_energy on {{ equal_on('held', 'named_energy', node_hour + ['job_number']) }}
)

select * from final
