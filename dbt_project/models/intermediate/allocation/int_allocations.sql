-- grain: one row per UTC day, pool, component, currency, payer, allocation kind, idle cause, policy row and counterparty
-- Who pays how much, adjustments included: what a what-if compares.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}

select * from {{ ref('int_books') }}
union all
select
    usage_date,
    pool_id,
    component,
    currency,
    {{ payer | join(', ') }},
    'adjustment' as allocation_kind,
    cast(null as {{ dbt.type_string() }}) as idle_cause,
    amount
from {{ ref('int_adjustments') }}
