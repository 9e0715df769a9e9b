-- grain: one row per invoice of a provider whose total was entered, and currency
select
    provider,
    invoice_id,
    currency,
    total as invoice_total,
    entered_by
from {{ ref('stg_policy__invoice_totals') }}
