-- grain: one row per job run, node, pool and hour that shares in energy which no sample names: its part
-- By GPU time, with the idle GPUs (int_node_energy). Where every job is named and no GPU is idle, all of them share it.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}

with unnamed as (
    select * from {{ ref('int_node_energy') }}
    where unnamed_energy <> 0
),

claims as (
    select
        {{ qualified('jobs', node_hour) }},
        jobs.job_number,
        payers.job_key,
        jobs.gpu_held as weight,
        unnamed.rest_energy,
        unnamed.claimed
    from {{ ref('int_job_hours') }} as jobs
    inner join unnamed on {{ equal_on('jobs', 'unnamed', node_hour) }}
    inner join {{ ref('int_job_payers') }} as payers on jobs.job_number = payers.job_number
    where jobs.gpu_held > 0 and (unnamed.is_shared_by_named or jobs.named_energy is null)
),

running as (
    select
        claims.*,
        sum(weight) over (
            partition by {{ node_hour | join(', ') }} order by job_key
            rows between unbounded preceding and current row
        ) as running_weight
    from claims
)

select
    {{ node_hour | join(', ') }},
    job_number,
    {{ part_of('rest_energy', 'weight', 'running_weight', 'claimed', 0) }} as energy
from running
