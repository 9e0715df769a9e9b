-- grain: one row per UTC day, pool, component, currency, payer, allocation kind, idle cause, policy row, counterparty and (burst) reason
-- Who pays how much before adjustments, which read these rows and do not see each other; on the days of int_booked_days alone.
-- Why is said where it is written down. The days are joined first, so that where there are none nothing is added up.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set of_job = ['usage_date', 'pool_id', 'currency', 'job_number'] %}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with direct as (
    select
        {%- for component in ['gpu', 'cpu', 'memory', 'energy'] %}
        cast(sum(costs.{{ component }}_cost) as numeric(38, 9)) as {{ component }}_cost,
        {%- endfor %}
        {{ qualified('costs', of_job) }}
    from {{ ref('int_job_pool_hour_costs') }} as costs
    inner join {{ ref('int_booked_days') }} as booked_days on costs.usage_date = booked_days.usage_date
    group by {{ qualified('costs', of_job) }}
),

idle as (
    select costs.*
    from {{ ref('int_job_idle_costs') }} as costs
    inner join {{ ref('int_booked_days') }} as booked_days on costs.usage_date = booked_days.usage_date
),

of_jobs as (
    {%- for component in ['gpu', 'cpu', 'memory', 'energy'] %}
    select
        {{ of_job | join(', ') }},
        '{{ component }}' as component,
        'direct' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ component }}_cost as amount
    from direct
    where {{ component }}_cost is not null
    union all
    {%- endfor %}
    {%- for component in ['gpu', 'cpu', 'memory'] %}
    select
        {{ of_job | join(', ') }},
        '{{ component }}' as component,
        'idle' as allocation_kind,
        idle_cause,
        {{ component }}_cost as amount
    from idle
    where {{ component }}_cost is not null
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select
    of_jobs.usage_date,
    of_jobs.pool_id,
    of_jobs.component,
    of_jobs.currency,
    {{ qualified('payers', payer) }},
    of_jobs.allocation_kind,
    of_jobs.idle_cause,
    of_jobs.amount
from of_jobs
inner join {{ ref('int_job_payers') }} as payers on of_jobs.job_number = payers.job_number
union all
select
    others.usage_date,
    others.pool_id,
    others.component,
    others.currency,
    {{ qualified('others', payer) }},
    others.allocation_kind,
    others.idle_cause,
    others.amount
from {{ ref('int_other_books') }} as others
inner join {{ ref('int_booked_days') }} as booked_days on others.usage_date = booked_days.usage_date
