-- grain: one row per invoice of a provider whose total was entered, and currency
select
    provider,
    invoice_id,
    currency,
    invoice_total,
    entered_by
from {{ ref('int_invoice_totals') }}
