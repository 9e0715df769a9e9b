-- grain: one row per delivered file, invoice, billing period and currency
select
    source_name,
    table_name,
    delivery,
    content_hash,
    delivered_at,
    version_number,
    is_replaced,
    stream,
    replaces,
    variant,
    size_bytes,
    provider,
    invoice_id,
    period_start_date,
    period_end_date,
    currency,
    row_count,
    quarantined_count,
    billed_cost,
    effective_cost
from {{ ref('int_deliveries') }}
