-- grain: one row per UTC day of the what-if, pool, component, currency, team, allocation kind and idle cause
-- Splits run in the order of teams, so a team's sum is the same whether jobs are kept apart or not.
select
    usage_date,
    pool_id,
    component,
    currency,
    team_id,
    allocation_kind,
    idle_cause,
    cast(sum(amount) as numeric(38, 9)) as amount
from {{ ref('int_allocations') }}
group by usage_date, pool_id, component, currency, team_id, allocation_kind, idle_cause
