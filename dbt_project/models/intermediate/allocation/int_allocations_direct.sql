-- grain: one row per UTC day, pool, hourly component, currency and job: its direct cost
{%- set components = {
    'gpu': ['gpu_seconds', 'gpu_held'],
    'cpu': ['cpu_core_seconds', 'cpu_held'],
    'memory': ['memory_gib_seconds', 'memory_held'],
    'energy': ['kwh', 'energy'],
} %}

with costs as (
    {%- for component, (driver, quantity) in components.items() %}
    select
        usage_date,
        pool_id,
        '{{ component }}' as component,
        currency,
        job_number,
        '{{ driver }}' as driver,
        {{ quantity }} as quantity,
        {{ component }}_cost as amount
    from {{ ref('int_job_pool_day_costs') }}
    where {{ component }}_cost is not null
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select
    costs.usage_date,
    costs.pool_id,
    costs.component,
    costs.currency,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    payers.job_key,
    costs.driver,
    costs.quantity,
    costs.amount
from costs
inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
