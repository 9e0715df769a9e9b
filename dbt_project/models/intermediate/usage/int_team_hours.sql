-- grain: one row per hour, pool, team and self-declared workload rule (none where the class was not self-declared)
-- What each method counts of a job, added up: all that the comparisons of a month need of the hours of its jobs.
{%- set units = {'gpu': '25200000', 'cpu': '1000000', 'memory': '1024000'} %}

with usage_hours as (
    select * from {{ ref('int_job_usage_hours') }}
),

declared as (
    select * from {{ ref('int_job_classes') }}
    where is_class_self_declared
),

-- A job that holds nothing of a component has no part in its cost, however long it was there: that is judged over all
-- its nodes.
jobs as (
    select
        usage_date,
        hour_ms,
        pool_id,
        job_key,
        any_value(team_id) as team_id,
        {%- for component, unit in units.items() %}
        sum({{ quotient(component ~ '_held', unit) }}) as {{ component }}_seconds,
        sum({{ component }}_held) as {{ component }}_direct_weight,
        sum({{ as_weight(component ~ '_held') }} * class_weight) as {{ component }}_complexity_weight,
        sum({{ component }}_weight) as {{ component }}_charged_weight,
        {%- endfor %}
        sum(present_ms) as present_ms
    from usage_hours
    group by usage_date, hour_ms, pool_id, job_key
),

final as (
    select
        jobs.usage_date,
        jobs.hour_ms,
        jobs.pool_id,
        jobs.team_id,
        {%- for component in units %}
        sum(jobs.{{ component }}_seconds) as {{ component }}_seconds,
        sum(jobs.{{ component }}_direct_weight) as {{ component }}_direct_weight,
        sum(case when jobs.{{ component }}_direct_weight > 0 then jobs.present_ms else 0 end) as {{ component }}_time_weight,
        sum(jobs.{{ component }}_complexity_weight) as {{ component }}_complexity_weight,
        sum(jobs.{{ component }}_charged_weight) as {{ component }}_charged_weight,
        {%- endfor %}
        declared.workload_rule as self_declared_rule
    from jobs
    left join declared on jobs.usage_date = declared.usage_date and jobs.job_key = declared.job_key
    group by jobs.usage_date, jobs.hour_ms, jobs.pool_id, jobs.team_id, declared.workload_rule
)

select * from final
