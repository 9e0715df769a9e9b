{{ config(meta={"dagster": {"ref": {"name": "fct_cost_allocations"}}}) }}
-- transfers come in pairs: whatever a policy moves, somebody gives what somebody gets, in the same pool, component and
-- currency, on the same day
select
    usage_date,
    pool_id,
    component,
    currency,
    allocation_kind,
    policy_row,
    sum(amount) as created_cost
from {{ ref('fct_cost_allocations') }}
where {{ in_window('usage_date') }} and allocation_kind in ('burst', 'outcome_credit', 'adjustment')
group by usage_date, pool_id, component, currency, allocation_kind, policy_row
having sum(amount) <> 0
