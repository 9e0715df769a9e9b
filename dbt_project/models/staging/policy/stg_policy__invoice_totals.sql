-- grain: one row per row of seeds/policy/invoice_totals.csv
select
    provider,
    invoice_id,
    currency,
    total,
    entered_by,
    reason
from {{ ref('invoice_totals') }}
