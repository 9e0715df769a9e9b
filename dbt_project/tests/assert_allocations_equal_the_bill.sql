{{ config(meta={"dagster": {"ref": {"name": "fct_cost_allocations"}}}) }}
-- law 1, conservation: per day, pool, component and currency, what payers are charged is what was billed, exactly
with billed as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        sum(allocatable_cost) as allocatable_cost
    from {{ ref('fct_billed_costs') }}
    where {{ in_window('usage_date') }}
    group by usage_date, pool_id, component, currency
),

allocated as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        sum(amount) as allocated_cost
    from {{ ref('fct_cost_allocations') }}
    where {{ in_window('usage_date') }}
    group by usage_date, pool_id, component, currency
)

select
    coalesce(billed.usage_date, allocated.usage_date) as usage_date,
    coalesce(billed.pool_id, allocated.pool_id) as pool_id,
    coalesce(billed.component, allocated.component) as component,
    coalesce(billed.currency, allocated.currency) as currency,
    billed.allocatable_cost,
    allocated.allocated_cost,
    coalesce(billed.allocatable_cost, 0) - coalesce(allocated.allocated_cost, 0) as difference
from billed
full outer join allocated
    on
        billed.usage_date = allocated.usage_date
        and billed.pool_id = allocated.pool_id
        and billed.component = allocated.component
        and billed.currency = allocated.currency
where coalesce(billed.allocatable_cost, 0) <> coalesce(allocated.allocated_cost, 0)
