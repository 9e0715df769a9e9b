-- grain: one row per job run, pool and hour: what it held of each resource on all its nodes, and what that weighs
-- Beside the weight under the method in force stand what other methods would count: the time present, and what was held times
-- the weight of the class on each node. Most jobs were there once and on one node, and need no sums.
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}
{%- set job_hour = ['hour_ms', 'pool_id', 'job_number'] %}

select
    usage_hours.usage_date,
    {{ qualified('usage_hours', job_hour) }},
    {%- for component, quantity in held.items() %}
    usage_hours.{{ quantity }},
    usage_hours.{{ component }}_weight,
    {%- if component != 'energy' %}
    {{ as_weight('usage_hours.' ~ quantity) }} * usage_hours.class_weight as {{ component }}_complexity_weight,
    {%- endif %}
    {%- endfor %}
    usage_hours.present_ms,
    usage_hours.is_energy_measured
from {{ ref('int_job_usage_hours') }} as usage_hours
left join {{ ref('int_job_spans') }} as spans on {{ equal_on('usage_hours', 'spans', job_hour) }}
where spans.job_number is null
union all
select
    usage_hours.usage_date,
    {{ qualified('usage_hours', job_hour) }},
    {%- for component, quantity in held.items() %}
    cast(sum(usage_hours.{{ quantity }}) as int64) as {{ quantity }},
    sum(usage_hours.{{ component }}_weight) as {{ component }}_weight,
    {%- if component != 'energy' %}
    sum({{ as_weight('usage_hours.' ~ quantity) }} * usage_hours.class_weight) as {{ component }}_complexity_weight,
    {%- endif %}
    {%- endfor %}
    cast(sum(usage_hours.present_ms) as int64) as present_ms,
    max(case when usage_hours.is_energy_measured then 1 else 0 end) = 1 as is_energy_measured
from {{ ref('int_job_usage_hours') }} as usage_hours
inner join {{ ref('int_job_spans') }} as spans on {{ equal_on('usage_hours', 'spans', job_hour) }}
group by usage_hours.usage_date, {{ qualified('usage_hours', job_hour) }}
