-- grain: one row per UTC day, pool, currency and job: its direct cost by component, and what it held
-- Side by side, because nearly all rows of the books are of jobs: fct_cost_allocations lays them out one below the other.
{%- set held = {
    'gpu': ('gpu_seconds', 'gpu_held', '25200000'),
    'cpu': ('cpu_core_seconds', 'cpu_held', '1000000'),
    'memory': ('memory_gib_seconds', 'memory_held', '1024000'),
} %}

with costs as (
    select * from {{ ref('int_job_pool_day_costs') }}
    where coalesce(gpu_cost, cpu_cost, memory_cost, energy_cost) is not null
),

-- Where no power was measured, energy follows GPU time, and that is no number of kilowatt-hours.
metered_pools as (
    select
        usage_date,
        pool_id
    from {{ ref('int_energy_rates') }}
    where is_measured
)

select
    costs.usage_date,
    costs.pool_id,
    costs.currency,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    payers.job_key,
    {%- for component, (driver, quantity, unit) in held.items() %}
    costs.{{ component }}_cost,
    {{ quotient('costs.' ~ quantity, unit) }} as {{ driver }},
    {%- endfor %}
    costs.energy_cost,
    case when metered_pools.pool_id is not null then {{ quotient('costs.energy', '3600000000000') }} end as energy_kwh
from costs
inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
left join metered_pools on costs.usage_date = metered_pools.usage_date and costs.pool_id = metered_pools.pool_id
