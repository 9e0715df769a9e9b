-- grain: one row per delivered file, invoice, billing period and currency
select
    source as source_name,
    table_name,
    delivery,
    content_hash,
    size_bytes,
    variant,
    coalesce(stream, '') as stream,
    replaces,
    provider,
    invoice_id,
    currency,
    {{ adapter.quote('rows') }} as row_count,
    quarantined as quarantined_count,
    period_start_date,
    period_end_date,
    cast(billed_cost as numeric(38, 9)) as billed_cost,
    cast(effective_cost as numeric(38, 9)) as effective_cost,
    {{ utc_timestamp('delivered_at') }} as delivered_at
from {{ source('landing', 'deliveries') }}
