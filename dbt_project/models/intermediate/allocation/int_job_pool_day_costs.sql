-- grain: one row per job run, UTC day, pool and currency: its direct cost by component
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

select
    {%- for component, quantity in held.items() %}
    cast(sum({{ quantity }}) as int64) as {{ quantity }},
    cast(sum({{ component }}_cost) as numeric(38, 9)) as {{ component }}_cost,
    {%- endfor %}
    usage_date,
    pool_id,
    currency,
    job_number
from {{ ref('int_job_pool_hour_costs') }}
group by usage_date, pool_id, currency, job_number
