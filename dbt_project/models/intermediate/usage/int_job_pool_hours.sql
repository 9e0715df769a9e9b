-- grain: one row per job run, pool and hour: what it held of each resource on all its nodes, and what that weighs
-- Beside the weight under the method in force stand what other methods would count: the time present, and what was held times
-- the weight of the class on each node.
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

select
    usage_date,
    hour_ms,
    pool_id,
    job_number,
    {%- for component, quantity in held.items() %}
    cast(sum({{ quantity }}) as int64) as {{ quantity }},
    sum({{ component }}_weight) as {{ component }}_weight,
    {%- if component != 'energy' %}
    sum({{ as_weight(quantity) }} * class_weight) as {{ component }}_complexity_weight,
    {%- endif %}
    {%- endfor %}
    cast(sum(present_ms) as int64) as present_ms,
    max(case when is_energy_measured then 1 else 0 end) = 1 as is_energy_measured
from {{ ref('int_job_usage_hours') }}
group by usage_date, hour_ms, pool_id, job_number
