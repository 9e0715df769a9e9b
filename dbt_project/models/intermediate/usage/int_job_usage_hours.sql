-- grain: one row per job run, node, pool and hour: what it held, how busy it kept it, what energy it drew
{%- set node_hour = ['usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}

with job_node_hours as (
    select * from {{ ref('int_job_node_hours') }}
),

gpu_hours as (
    select * from {{ ref('int_gpu_hours') }}
    where part_id is not null
),

energy as (
    select * from {{ ref('int_energy') }}
    where cause = 'used'
),

-- A node can leave a pool and come back within the hour: the part is still one.
parts as (
    select
        {{ node_hour | join(', ') }},
        job_key,
        part_id,
        team_id,
        project_id,
        user_name,
        sum(held_ms) as held_ms,
        sum(gpu_held) as gpu_held,
        sum(cpu_held) as cpu_held,
        sum(memory_held) as memory_held
    from job_node_hours
    group by {{ node_hour | join(', ') }}, job_key, part_id, team_id, project_id, user_name
),

jobs as (
    select
        {{ qualified('parts', node_hour) }},
        parts.job_key,
        parts.team_id,
        parts.project_id,
        parts.user_name,
        max(parts.held_ms) as held_ms,
        sum(parts.gpu_held) as gpu_held,
        sum(parts.cpu_held) as cpu_held,
        sum(parts.memory_held) as memory_held,
        sum(gpu_hours.busy_sampled_ms) as busy_sampled_ms,
        sum(gpu_hours.busy_millipercent_ms) as busy_millipercent_ms
    from parts
    left join gpu_hours on {{ equal_on('parts', 'gpu_hours', node_hour) }} and parts.part_id = gpu_hours.part_id
    group by {{ qualified('parts', node_hour) }}, parts.job_key, parts.team_id, parts.project_id, parts.user_name
),

final as (
    select
        jobs.*,
        energy.weight as energy,
        coalesce(energy.is_measured, false) as is_energy_measured
    from jobs
    left join energy on {{ equal_on('jobs', 'energy', node_hour) }} and jobs.job_key = energy.job_key
)

select * from final
