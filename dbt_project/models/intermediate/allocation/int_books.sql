-- grain: one row per UTC day, pool, component, currency, payer, allocation kind, idle cause, policy row, counterparty and (burst) reason
-- Who pays how much before adjustments, which read these rows and do not see each other. Why is said where it is written down.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with idle_of_jobs as (
    {%- for component in ['gpu', 'cpu', 'memory'] %}
    select
        usage_date,
        pool_id,
        '{{ component }}' as component,
        currency,
        idle_cause,
        job_number,
        {{ component }}_cost as amount
    from {{ ref('int_job_idle_costs') }}
    where {{ component }}_cost is not null
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select
    usage_date,
    pool_id,
    component,
    currency,
    {{ payer | join(', ') }},
    'direct' as allocation_kind,
    {{ no_text }} as idle_cause,
    amount
from {{ ref('int_allocations_direct') }}
union all
select
    idle_of_jobs.usage_date,
    idle_of_jobs.pool_id,
    idle_of_jobs.component,
    idle_of_jobs.currency,
    {{ qualified('payers', payer) }},
    'idle' as allocation_kind,
    idle_of_jobs.idle_cause,
    idle_of_jobs.amount
from idle_of_jobs
inner join {{ ref('int_job_payers') }} as payers on idle_of_jobs.job_number = payers.job_number
union all
select
    usage_date,
    pool_id,
    component,
    currency,
    {{ payer | join(', ') }},
    allocation_kind,
    idle_cause,
    amount
from {{ ref('int_other_books') }}
