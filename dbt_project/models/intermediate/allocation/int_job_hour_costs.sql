-- grain: one row per pool, hour, hourly component, currency and job: its direct cost
-- The costs of int_job_pool_hour_costs one below the other, with their payers: for the few rules that look at single hours.

with costs as (
    {%- for component in ['gpu', 'cpu', 'memory', 'energy'] %}
    select
        usage_date,
        hour_ms,
        pool_id,
        '{{ component }}' as component,
        currency,
        job_number,
        {{ 'gpu_weight' if component == 'gpu' else as_weight('null') }} as gpu_weight,
        {{ component }}_cost as amount
    from {{ ref('int_job_pool_hour_costs') }}
    where {{ component }}_cost is not null
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select
    costs.usage_date,
    costs.hour_ms,
    costs.pool_id,
    costs.component,
    costs.currency,
    costs.job_number,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    payers.job_key,
    costs.gpu_weight,
    costs.amount
from costs
inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
