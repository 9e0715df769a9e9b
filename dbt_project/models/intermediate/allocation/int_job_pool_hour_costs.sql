-- grain: one row per job run, pool, hour and currency: its direct cost by component
-- Each hour's used cost is split over the jobs that held the component's resource in the pool, by what they weigh. A job that
-- held nothing of it, or in an hour that costs nothing of it, has neither cost nor quantity.
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

with pool_hour_costs as (
    select
        {%- for component in held %}
        max(case when component = '{{ component }}' then used_cost end) as {{ component }}_used_cost,
        {%- endfor %}
        hour_ms,
        pool_id,
        currency
    from {{ ref('int_pool_hour_costs') }}
    where used > 0
    group by hour_ms, pool_id, currency
),

weighted as (
    select
        {%- for component, quantity in held.items() %}
        pool_hour_costs.{{ component }}_used_cost,
        job_hours.{{ quantity }},
        job_hours.{{ component }}_weight,
        {%- endfor %}
        job_hours.usage_date,
        job_hours.hour_ms,
        job_hours.pool_id,
        pool_hour_costs.currency,
        job_hours.job_number
    from {{ ref('int_job_pool_hours') }} as job_hours
    inner join pool_hour_costs
        on job_hours.hour_ms = pool_hour_costs.hour_ms and job_hours.pool_id = pool_hour_costs.pool_id
),

{%- set pieces = [] %}
{%- for component in held %}
{%- do pieces.append(
    dict(part=component ~ '_part', amount=component ~ '_used_cost', weight=component ~ '_weight')
) %}
{%- endfor %}

parts as (
    {{ split_side_by_side('weighted', pieces, by=['hour_ms', 'pool_id', 'currency'], order_by=['job_number']) }}
),

final as (
    select
        {%- for component, quantity in held.items() %}
        case when {{ component }}_used_cost is not null and {{ quantity }} > 0 then {{ quantity }} end as {{ quantity }},
        {{ component }}_weight,
        case when {{ quantity }} > 0 then {{ component }}_part end as {{ component }}_cost,
        {%- endfor %}
        usage_date,
        hour_ms,
        pool_id,
        currency,
        job_number
    from parts
)

select * from final
