-- grain: one row per job run, UTC day, pool, currency and idle cause that those pay who used the pool on that day: what it pays
-- A component whose idle cost exceeds the ceiling of its pool is left to int_allocations_idle.
{%- set components = ['gpu', 'cpu', 'memory'] %}

with exceeded as (
    select
        {%- for component in components %}
        max(case when component = '{{ component }}' then 1 else 0 end) = 1 as is_{{ component }}_exceeded,
        {%- endfor %}
        usage_date,
        pool_id,
        currency
    from {{ ref('int_exceeded_ceilings') }}
    group by usage_date, pool_id, currency
),

final as (
    select
        {%- for component in components %}
        case when not coalesce(exceeded.is_{{ component }}_exceeded, false) then parts.{{ component }}_cost end as {{ component }}_cost,
        {%- endfor %}
        parts.usage_date,
        parts.pool_id,
        parts.currency,
        parts.idle_cause,
        parts.job_number,
        parts.policy_row
    from {{ ref('int_job_idle_parts') }} as parts
    left join exceeded on {{ equal_on('parts', 'exceeded', ['usage_date', 'pool_id', 'currency']) }}
)

select * from final
where coalesce(gpu_cost, cpu_cost, memory_cost) is not null
