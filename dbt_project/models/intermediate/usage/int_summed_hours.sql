-- grain: one row per job run, node, pool and hour in which it may have been there in several parts: what they add up to
-- Energy of samples that name a part belongs to its job, if that holds GPUs there. A requeued job can run twice in one hour
-- under the same name; its runs share what was sampled by GPU time.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set held = ['gpu_device_ms', 'gpu_held', 'cpu_held', 'memory_held'] %}
{%- set activity = ['sm_sampled_ms', 'sm_millipercent_ms', 'tensor_sampled_ms', 'tensor_millipercent_ms'] %}
{%- set busy = ['busy_sampled_ms', 'busy_millipercent_ms'] %}

with summed as (
    select
        usage_date,
        {{ node_hour | join(', ') }},
        {%- for column in held + activity + busy %}
        cast(sum({{ column }}) as int64) as {{ column }},
        {%- endfor %}
        max(gpu_model) as gpu_model,
        max(part_held_ms) as held_ms,
        job_number
    from {{ ref('int_job_node_hours') }}
    where not is_alone
    group by usage_date, {{ node_hour | join(', ') }}, job_number
),

-- All names of these jobs, also of parts that were not there in the hour.
names as (
    select distinct
        summed.job_number,
        job_parts.part_id,
        job_parts.job_key,
        job_parts.is_only_one_of_its_name
    from summed
    inner join {{ ref('int_job_parts') }} as job_parts on summed.job_number = job_parts.job_number
),

named as (
    select
        {{ qualified('summed', node_hour) }},
        names.part_id,
        names.job_number,
        names.job_key,
        names.is_only_one_of_its_name,
        gpu_hours.energy_microjoules,
        summed.gpu_held
    from summed
    inner join names on summed.job_number = names.job_number
    inner join {{ ref('int_gpu_hours') }} as gpu_hours
        on {{ equal_on('summed', 'gpu_hours', node_hour) }} and names.part_id = gpu_hours.part_id
    where summed.gpu_held > 0 and gpu_hours.energy_sampled_ms > 0
),

shared as (
    select * from named
    where not is_only_one_of_its_name
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
        where is_only_one_of_its_name
        union all
        select {{ node_hour | join(', ') }}, job_number, energy_microjoules_part as energy_microjoules
        from shared_split
    ) as energy_of_jobs
    group by {{ node_hour | join(', ') }}, job_number
),

final as (
    select
        summed.*,
        named_energy.energy_microjoules as named_energy
    from summed
    left join named_energy on {{ equal_on('summed', 'named_energy', node_hour + ['job_number']) }}
)

select * from final
