-- grain: one row per job run, UTC day, pool, currency and idle cause that those pay who used the pool on that day, before the ceiling
-- The rule that most companies have for most causes. Its splits read the running sums that the day's runs came with; all other
-- rules, and energy, are for `int_idle_by_rule`.
{%- set components = ['gpu', 'cpu', 'memory'] %}

with day_costs as (
    select
        {%- for component in components %}
        cast(sum(case when component = '{{ component }}' then idle_cost end) as numeric(38, 9)) as {{ component }}_idle_cost,
        {%- endfor %}
        usage_date,
        pool_id,
        currency,
        idle_cause,
        policy_row
    from {{ ref('int_idle_costs') }}
    where is_paid_by_use_of_day
    group by usage_date, pool_id, currency, idle_cause, policy_row
),

{%- set pieces = [] %}
{%- for component in components %}
{%- do pieces.append(dict(
    part=component ~ '_part', amount=component ~ '_idle_cost', weight=component ~ '_weight',
    running=component ~ '_running_weight', total=component ~ '_total_weight',
)) %}
{%- endfor %}
{%- set weighted %}
    select
        {{ qualified('day_costs', components, '_idle_cost') }},
        {{ qualified('job_days', components, '_weight') }},
        {{ qualified('job_days', components, '_running_weight') }},
        {{ qualified('job_days', components, '_total_weight') }},
        job_days.usage_date,
        job_days.pool_id,
        day_costs.currency,
        day_costs.idle_cause,
        day_costs.policy_row,
        job_days.job_number
    from {{ ref('int_job_pool_days') }} as job_days
    inner join day_costs on job_days.usage_date = day_costs.usage_date and job_days.pool_id = day_costs.pool_id
{%- endset %}

parts as (
    {{ parts_of_each(weighted, pieces) }}
),

-- Who held nothing of a component that day has no part in its idle cost.
final as (
    select
        usage_date,
        pool_id,
        currency,
        idle_cause,
        {%- for component in components %}
        case when {{ component }}_weight > 0 then {{ component }}_part end as {{ component }}_cost,
        {%- endfor %}
        job_number,
        policy_row
    from parts
)

select * from final
