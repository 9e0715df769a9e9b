-- grain: one row per covered node-hour and who drew energy in it: a job, or an idle cause
-- What a sample names belongs to the named job. The rest is shared, by GPU time, by the jobs that no sample names
-- and the idle GPUs; the idle part goes to the causes.
{%- set node_hour = ['usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}

with gpu_hours as (
    select * from {{ ref('int_gpu_hours') }}
),

node_hours as (
    select * from {{ ref('int_node_hours') }}
),

job_node_hours as (
    select * from {{ ref('int_job_node_hours') }}
    where gpu_held > 0
),

job_parts as (
    select distinct
        usage_date,
        cluster_id,
        part_id,
        job_key
    from {{ ref('int_job_parts') }}
),

sampled as (
    select
        {{ node_hour | join(', ') }},
        sum(energy_sampled_ms) as energy_sampled_ms,
        sum(energy_microjoules) as energy_microjoules
    from gpu_hours
    group by {{ node_hour | join(', ') }}
),

covered as (
    select
        node_hours.*,
        sampled.energy_microjoules
    from node_hours
    inner join sampled on {{ equal_on('node_hours', 'sampled', node_hour) }}
    where
        node_hours.gpu_inventory > 0
        and sampled.energy_sampled_ms * 25200 * 1000 >= node_hours.gpu_inventory * {{ var('minimum_coverage') }}
),

jobs as (
    select
        {{ qualified('job_node_hours', node_hour) }},
        job_node_hours.job_key,
        sum(job_node_hours.gpu_held) as gpu_held
    from job_node_hours
    inner join covered on {{ equal_on('job_node_hours', 'covered', node_hour) }}
    group by {{ qualified('job_node_hours', node_hour) }}, job_node_hours.job_key
),

named as (
    select
        jobs.*,
        gpu_hours.part_id,
        gpu_hours.energy_microjoules
    from gpu_hours
    inner join job_parts
        on
            gpu_hours.usage_date = job_parts.usage_date
            and gpu_hours.cluster_id = job_parts.cluster_id
            and gpu_hours.part_id = job_parts.part_id
    inner join jobs on {{ equal_on('gpu_hours', 'jobs', node_hour) }} and job_parts.job_key = jobs.job_key
    where gpu_hours.energy_sampled_ms > 0
),

-- A requeued job can run twice in one hour under the same name; its runs share what was sampled by GPU time.
named_split as (
    {{ split('named', ['energy_microjoules'], 'gpu_held', by=node_hour + ['part_id'], order_by=['job_key'], scale=0) }}
),

named_jobs as (
    select
        {{ node_hour | join(', ') }},
        job_key,
        sum(energy_microjoules_part) as energy
    from named_split
    group by {{ node_hour | join(', ') }}, job_key
),

drawing as (
    select
        jobs.*,
        named_jobs.energy as named_energy
    from jobs
    left join named_jobs on {{ equal_on('jobs', 'named_jobs', node_hour) }} and jobs.job_key = named_jobs.job_key
),

job_sums as (
    select
        {{ node_hour | join(', ') }},
        sum(gpu_held) as gpu_held,
        sum(case when named_energy is null then gpu_held else 0 end) as unnamed_held,
        sum(coalesce(named_energy, 0)) as named_energy
    from drawing
    group by {{ node_hour | join(', ') }}
),

rests as (
    select
        {{ qualified('covered', node_hour) }},
        covered.energy_microjoules - coalesce(job_sums.named_energy, 0) as rest_energy,
        covered.gpu_capacity - covered.gpu_held as gpu_idle,
        coalesce(job_sums.gpu_held, 0) as gpu_held,
        coalesce(job_sums.unnamed_held, 0) as unnamed_held,
        covered.gpu_down,
        covered.gpu_reserved,
        covered.gpu_stranded,
        covered.gpu_unscheduled
    from covered
    left join job_sums on {{ equal_on('covered', 'job_sums', node_hour) }}
),

claims as (
    select
        {{ qualified('rests', node_hour) }},
        rests.rest_energy,
        0 as claim_order,
        drawing.job_key,
        case
            when rests.unnamed_held + rests.gpu_idle = 0 then drawing.gpu_held
            when drawing.named_energy is null then drawing.gpu_held
            else 0
        end as weight
    from rests
    inner join drawing on {{ equal_on('rests', 'drawing', node_hour) }}
    union all
    select
        {{ qualified('rests', node_hour) }},
        rests.rest_energy,
        1 as claim_order,
        cast(null as {{ dbt.type_string() }}) as job_key,
        case when rests.gpu_held = 0 and rests.gpu_idle = 0 then 1 else rests.gpu_idle end as weight
    from rests
),

claim_split as (
    {{ split('claims', ['rest_energy'], 'weight', by=node_hour, order_by=['claim_order', 'job_key'], scale=0) }}
),

idle_causes as (
    {%- for cause in ['down', 'reserved', 'stranded', 'unscheduled'] %}
    select
        {{ qualified('rests', node_hour) }},
        {{ loop.index }} as cause_order,
        '{{ cause }}' as cause,
        claim_split.rest_energy_part as idle_energy,
        {%- if cause == 'unscheduled' %}
        case when rests.gpu_idle = 0 then 1 else rests.gpu_unscheduled end as weight
        {%- else %}
        rests.gpu_{{ cause }} as weight
        {%- endif %}
    from rests
    inner join claim_split on {{ equal_on('rests', 'claim_split', node_hour) }} and claim_split.claim_order = 1
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

idle_split as (
    {{ split('idle_causes', ['idle_energy'], 'weight', by=node_hour, order_by=['cause_order'], scale=0) }}
),

final as (
    select
        {{ qualified('drawing', node_hour) }},
        'used' as cause,
        drawing.job_key,
        coalesce(drawing.named_energy, 0) + coalesce(claim_split.rest_energy_part, 0) as energy
    from drawing
    inner join claim_split
        on {{ equal_on('drawing', 'claim_split', node_hour) }} and drawing.job_key = claim_split.job_key
    union all
    select
        {{ node_hour | join(', ') }},
        cause,
        cast(null as {{ dbt.type_string() }}) as job_key,
        idle_energy_part as energy
    from idle_split
)

select * from final
