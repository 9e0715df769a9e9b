-- grain: one row per job run, node, pool and hour: what it held, how busy it kept it, what energy it drew, what it weighs
-- The weight of a component is what its used cost follows: what was held, the time present (on the first node's row,
-- so that sums are right), or what was held times the weight of the workload class. Where no policy weighs anything, it is
-- what was held.
{%- set of_row = [
    'usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id', 'job_number', 'held_ms', 'present_ms', 'gpu_held',
    'cpu_held', 'memory_held', 'energy', 'is_energy_measured', 'busy_sampled_ms', 'busy_millipercent_ms', 'class_weight',
] %}
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

select
    {%- for component, quantity in held.items() %}
    {{ as_weight(quantity) }} as {{ component }}_weight,
    {%- endfor %}
    {{ of_row | join(', ') }}
from {{ ref('int_described_hours') }}
where not has_weights
union all
select
    {%- for component in held %}
    {{ component }}_weight,
    {%- endfor %}
    {{ of_row | join(', ') }}
from {{ ref('int_weighed_hours') }}
