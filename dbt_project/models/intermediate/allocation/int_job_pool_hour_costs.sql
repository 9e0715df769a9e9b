-- grain: one row per job run, pool, hour and currency: its direct cost by component
-- Each hour's used cost is split over the jobs that held the component's resource in the pool, by what they weigh. A job that
-- held nothing of it, or in an hour that costs nothing of it, has neither cost nor quantity. Few pools are billed for energy.
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held'} %}
{%- set pool_hour = ['hour_ms', 'pool_id'] %}

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

energy_costs as (
    select
        hour_ms,
        pool_id,
        currency,
        used_cost
    from {{ ref('int_pool_hour_costs') }}
    where used > 0 and component = 'energy'
),

-- Summed before the amounts come in: the database sorts whole rows.
job_hours as (
    select
        {{ held.values() | join(', ') }},
        {%- for component in held %}
        {{ component }}_weight,
        {%- endfor %}
        usage_date,
        hour_ms,
        pool_id,
        job_number
    from {{ ref('int_job_pool_hours') }}
),

running as (
    {{ running_sums('job_hours', sums_of_weights(held), by=pool_hour, order_by=['job_number']) }}
),

{%- set pieces = [] %}
{%- for component in held %}
{%- do pieces.append(dict(
    part=component ~ '_part', amount=component ~ '_used_cost', weight=component ~ '_weight',
    running=component ~ '_running_weight', total=component ~ '_total_weight',
)) %}
{%- endfor %}
{%- set weighted %}
    select
        running.*,
        {{ qualified('pool_hour_costs', held, '_used_cost') }},
        pool_hour_costs.currency
    from running
    inner join pool_hour_costs on {{ equal_on('running', 'pool_hour_costs', pool_hour) }}
{%- endset %}

parts as (
    {{ parts_of_each(weighted, pieces) }}
),

energy_users as (
    select
        job_hours.hour_ms,
        job_hours.pool_id,
        job_hours.job_number,
        job_hours.energy,
        job_hours.energy_weight,
        energy_costs.currency,
        energy_costs.used_cost
    from {{ ref('int_job_pool_hours') }} as job_hours
    inner join energy_costs on {{ equal_on('job_hours', 'energy_costs', pool_hour) }}
),

energy_parts as (
    {{ split('energy_users', ['used_cost'], 'energy_weight', by=pool_hour + ['currency'], order_by=['job_number']) }}
),

final as (
    select
        {%- for component, quantity in held.items() %}
        case when parts.{{ component }}_used_cost is not null and parts.{{ quantity }} > 0 then parts.{{ quantity }} end as {{ quantity }},
        case when parts.{{ quantity }} > 0 then parts.{{ component }}_part end as {{ component }}_cost,
        {%- endfor %}
        parts.gpu_weight,
        case when energy_parts.energy > 0 then energy_parts.energy end as energy,
        case when energy_parts.energy > 0 then energy_parts.used_cost_part end as energy_cost,
        parts.usage_date,
        parts.hour_ms,
        parts.pool_id,
        parts.currency,
        parts.job_number
    from parts
    left join energy_parts on {{ equal_on('parts', 'energy_parts', pool_hour + ['currency', 'job_number']) }}
)

select * from final
