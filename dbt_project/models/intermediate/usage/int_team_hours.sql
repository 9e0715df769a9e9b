-- grain: one row per hour, pool, team and self-declared workload rule (none where the class was not self-declared)
-- What each method counts of a job, added up: all that the comparisons of a month need of the hours of its jobs.
{%- set components = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held'} %}

with job_hours as (
    select
        job_hours.*,
        payers.team_id,
        case when payers.is_class_self_declared then payers.workload_rule end as self_declared_rule
    from {{ ref('int_job_pool_hours') }} as job_hours
    inner join {{ ref('int_job_payers') }} as payers on job_hours.job_number = payers.job_number
),

final as (
    select
        {%- for component, quantity in components.items() %}
        sum({{ quantity }}) as {{ component }}_direct_weight,
        -- A job that holds nothing of a component has no part in its cost, however long it was there.
        sum(case when {{ quantity }} > 0 then present_ms else 0 end) as {{ component }}_time_weight,
        sum({{ component }}_complexity_weight) as {{ component }}_complexity_weight,
        sum({{ component }}_weight) as {{ component }}_charged_weight,
        {%- endfor %}
        usage_date,
        hour_ms,
        pool_id,
        team_id,
        self_declared_rule
    from job_hours
    group by usage_date, hour_ms, pool_id, team_id, self_declared_rule
)

select * from final
