-- grain: one row per UTC day, pool, hourly component and currency: how its cost reaches the jobs, and how final the bill is
with priced as (
    select distinct
        usage_date,
        pool_id,
        component,
        currency
    from {{ ref('int_pool_hour_costs') }}
),

policies as (
    select * from {{ ref('int_allocation_policies') }}
),

days as (
    select * from {{ ref('int_days') }}
),

billed as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        -- As final as the least final line behind it.
        min(case when cost_status = 'final' then 1 else 0 end) = 1 as is_final
    from {{ ref('fct_billed_costs') }}
    where {{ in_window('usage_date') }}
    group by usage_date, pool_id, component, currency
)

select
    priced.usage_date,
    priced.pool_id,
    priced.component,
    priced.currency,
    coalesce(policies.method, 'direct') as method,
    case policies.method
        when 'time' then 'by time present'
        when 'complexity' then 'in proportion to use times the weight of the workload'
        else 'in proportion to use'
    end as reason,
    policies.policy_row,
    days.policy_hash,
    -- What no bill stands behind was decided and will not change with a bill.
    case when coalesce(billed.is_final, true) then 'final' else 'provisional' end as cost_status
from priced
inner join days on priced.usage_date = days.usage_date
left join policies
    on {{ equal_on('priced', 'policies', ['usage_date', 'pool_id', 'component']) }}
left join billed on {{ equal_on('priced', 'billed', ['usage_date', 'pool_id', 'component', 'currency']) }}
