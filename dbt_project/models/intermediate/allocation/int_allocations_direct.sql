-- grain: one row per UTC day, pool, hourly component, currency and job: its direct cost

with costs as (
    {%- for component in ['gpu', 'cpu', 'memory', 'energy'] %}
    select
        usage_date,
        pool_id,
        '{{ component }}' as component,
        currency,
        job_number,
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
    costs.amount
from costs
inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
