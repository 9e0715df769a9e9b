-- grain: one row per node, pool and hour whose energy was measured: whose it is
-- What samples name belongs to the named jobs (int_job_hours). The rest is shared, by GPU time, by the jobs that no sample names
-- and the idle GPUs; the idle part goes to the causes, the jobs' part is divided in int_unnamed_energy. Node-hours of
-- which too little was sampled are left out.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set causes = ['gpu_down', 'gpu_reserved', 'gpu_stranded', 'unscheduled_or_all'] %}

with gpu_hours as (
    select * from {{ ref('int_gpu_hours') }}
),

node_hours as (
    select * from {{ ref('int_node_hours') }}
    where gpu_inventory > 0
),

jobs as (
    select * from {{ ref('int_job_hours') }}
    where gpu_held > 0
),

sampled as (
    select
        {{ node_hour | join(', ') }},
        sum(energy_sampled_ms) as energy_sampled_ms,
        sum(energy_microjoules) as energy_microjoules
    from gpu_hours
    group by {{ node_hour | join(', ') }}
),

job_sums as (
    select
        {{ node_hour | join(', ') }},
        sum(gpu_held) as gpu_held,
        sum(case when named_energy is null then gpu_held else 0 end) as unnamed_held,
        sum(coalesce(named_energy, 0)) as named_energy
    from jobs
    group by {{ node_hour | join(', ') }}
),

rests as (
    select
        node_hours.usage_date,
        {{ qualified('node_hours', node_hour) }},
        sampled.energy_microjoules - coalesce(job_sums.named_energy, 0) as rest_energy,
        sampled.energy_microjoules,
        node_hours.gpu_capacity - node_hours.gpu_held as gpu_idle,
        coalesce(job_sums.gpu_held, 0) as gpu_held,
        coalesce(job_sums.unnamed_held, 0) as unnamed_held,
        node_hours.gpu_down,
        node_hours.gpu_reserved,
        node_hours.gpu_stranded,
        node_hours.gpu_unscheduled
    from node_hours
    inner join sampled on {{ equal_on('node_hours', 'sampled', node_hour) }}
    left join job_sums on {{ equal_on('node_hours', 'job_sums', node_hour) }}
    where
        sampled.energy_sampled_ms * 25200 * 1000
        >= node_hours.gpu_inventory * {{ var('minimum_coverage') }}
),

-- The idle GPUs come last in sharing the rest. Where none is idle and every job is named, the jobs share it by what they hold.
idle as (
    select
        rests.*,
        case
            when unnamed_held + gpu_idle > 0
                then rest_energy - {{ share('rest_energy', 'unnamed_held', 'unnamed_held + gpu_idle', 0) }}
            when gpu_held > 0 then 0
            else rest_energy
        end as idle_energy,
        case when gpu_idle = 0 then 1 else gpu_unscheduled end as unscheduled_or_all
    from rests
),

by_cause as (
    select
        idle.*,
        {{ split_over_columns('idle_energy', causes, scale=0, suffix='_energy') }}
    from idle
),

final as (
    select
        usage_date,
        {{ node_hour | join(', ') }},
        energy_microjoules - idle_energy as held_energy,
        rest_energy - idle_energy as unnamed_energy,
        -- What the weights of the jobs that share it add up to.
        case when unnamed_held + gpu_idle > 0 then unnamed_held + gpu_idle else gpu_held end as claimed,
        unnamed_held + gpu_idle = 0 as is_shared_by_named,
        rest_energy,
        idle_energy,
        gpu_down_energy as down_energy,
        gpu_reserved_energy as reserved_energy,
        gpu_stranded_energy as stranded_energy,
        unscheduled_or_all_energy as unscheduled_energy
    from by_cause
)

select * from final
