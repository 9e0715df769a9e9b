-- grain: one row per job run, UTC day and pool: what it held of each resource, and what that weighs among all runs of the day
-- Running and total sums go through the runs in the order of their payers, ready for splits of the day.
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

with parts as (
    select
        usage_date,
        pool_id,
        job_number,
        {%- for component, quantity in held.items() %}
        cast(sum({{ quantity }}) as int64) as {{ quantity }},
        {{ as_weight('sum(' ~ component ~ '_weight)') }} as {{ component }}_weight,
        {%- endfor %}
        max(case when is_energy_measured then 1 else 0 end) = 1 as is_energy_measured
    from {{ ref('int_job_pool_hours') }}
    group by usage_date, pool_id, job_number
)

{{ running_sums('parts', sums_of_weights(['gpu', 'cpu', 'memory']), by=['usage_date', 'pool_id'], order_by=['job_number']) }}
