-- grain: one row per job run, node, pool and hour: what its parts held there, and what the samples that name them add up to
-- Most jobs are one part that nobody else is called by, and need neither sums nor shares.
{%- set of_row = [
    'usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id', 'job_number', 'gpu_model', 'gpu_device_ms', 'gpu_held',
    'cpu_held', 'memory_held', 'sm_sampled_ms', 'sm_millipercent_ms', 'tensor_sampled_ms', 'tensor_millipercent_ms',
    'busy_sampled_ms', 'busy_millipercent_ms',
] %}

select
    {{ of_row | join(', ') }},
    part_held_ms as held_ms,
    case when gpu_held > 0 then energy_microjoules end as named_energy
from {{ ref('int_job_node_hours') }}
where is_alone
union all
select
    {{ of_row | join(', ') }},
    held_ms,
    named_energy
from {{ ref('int_summed_hours') }}
