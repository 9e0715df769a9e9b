-- grain: one row per job run, pool and hour: what it held of each resource on all its nodes, and what that weighs
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

select
    usage_date,
    hour_ms,
    pool_id,
    job_number,
    {%- for component, quantity in held.items() %}
    cast(sum({{ quantity }}) as int64) as {{ quantity }},
    sum({{ component }}_weight) as {{ component }}_weight,
    {%- endfor %}
    max(case when is_energy_measured then 1 else 0 end) = 1 as is_energy_measured
from {{ ref('int_job_usage_hours') }}
group by usage_date, hour_ms, pool_id, job_number
