-- grain: one row per UTC day, pool, hourly component, currency, idle cause and payer, before the ceiling
-- Payers are job runs by their number, or teams.
select
    usage_date,
    pool_id,
    component,
    currency,
    idle_cause,
    team_id,
    job_number,
    policy_row,
    reason,
    amount
from {{ ref('int_idle_by_rule') }}
{%- for component in ['gpu', 'cpu', 'memory'] %}
union all
select
    usage_date,
    pool_id,
    '{{ component }}' as component,
    currency,
    idle_cause,
    cast(null as {{ dbt.type_string() }}) as team_id,
    job_number,
    policy_row,
    case when policy_row is null then 'no idle policy names this pool and cause' else 'in proportion to use' end as reason,
    {{ component }}_cost as amount
from {{ ref('int_job_idle_parts') }}
where {{ component }}_cost is not null
{%- endfor %}
