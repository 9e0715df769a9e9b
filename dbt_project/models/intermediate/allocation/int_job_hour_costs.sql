-- grain: one row per pool, hour, hourly component, currency and job: its direct cost
-- The costs of int_job_pool_hour_costs one below the other, with their payers: for the few rules that look at single hours.
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

{%- for component, quantity in held.items() %}
select
    costs.usage_date,
    costs.hour_ms,
    costs.pool_id,
    '{{ component }}' as component,
    costs.currency,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    payers.job_key,
    costs.job_number,
    weights.{{ component }}_weight as weight,
    costs.{{ component }}_cost as amount
from {{ ref('int_job_pool_hour_costs') }} as costs
inner join {{ ref('int_job_pool_hours') }} as weights
    on {{ equal_on('costs', 'weights', ['hour_ms', 'pool_id', 'job_number']) }}
inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
where costs.{{ component }}_cost is not null
{%- if not loop.last %}
union all
{%- endif %}
{%- endfor %}
