{{ config(meta={"dagster": {"ref": {"name": "rpt_reconciliation"}}}) }}
-- law 1, per invoice: billed = allocatable + paid ahead - released + outside the built days, and all of it is allocated
select
    provider,
    invoice_id,
    currency,
    billed_cost,
    allocatable_cost,
    billed_difference,
    currency_allocatable_cost,
    currency_allocated_cost,
    allocated_difference
from {{ ref('rpt_reconciliation') }}
where coalesce(billed_difference, 1) <> 0 or coalesce(allocated_difference, 1) <> 0
