-- grain: one row per bill line and UTC day that it may cost something on
select
    date as usage_date,
    charge_key,
    source as source_name,
    provider,
    invoice_id,
    billing_account_id,
    sub_account_id,
    currency,
    charge_category,
    charge_class,
    charge_frequency,
    charge_description,
    service_category,
    service_name,
    sku_id,
    region_id,
    resource_id,
    resource_type,
    commitment_id,
    commitment_status,
    cast(commitment_quantity as numeric(38, 9)) as commitment_quantity,
    -- The provider does not say what this fee's use costs: its own arithmetic is left to us.
    charge_category = 'Purchase' and effective_cost is null and commitment_id is not null
    and (coalesce(commitment_quantity, 0) > 0 or commitment_end_at is not null)
    and coalesce(commitment_end_at, charge_end_at) > coalesce(commitment_start_at, charge_start_at) as is_amortized,
    tags,
    is_final,
    cast(coalesce(list_cost, billed_cost) as numeric(38, 9)) as list_cost,
    cast(billed_cost as numeric(38, 9)) as billed_cost,
    cast(coalesce(effective_cost, billed_cost) as numeric(38, 9)) as effective_cost,
    {{ utc_timestamp('billing_period_start_at') }} as billing_period_start_at,
    {{ utc_timestamp('billing_period_end_at') }} as billing_period_end_at,
    {{ utc_timestamp('charge_start_at') }} as charge_start_at,
    {{ utc_timestamp('charge_end_at') }} as charge_end_at,
    {{ milliseconds('billing_period_start_at') }} as billing_period_start_ms,
    {{ milliseconds('billing_period_end_at') }} as billing_period_end_ms,
    {{ milliseconds('charge_start_at') }} as charge_start_ms,
    {{ milliseconds('charge_end_at') }} as charge_end_ms,
    {{ milliseconds('coalesce(commitment_start_at, charge_start_at)') }} as commitment_start_ms,
    {{ milliseconds('coalesce(commitment_end_at, charge_end_at)') }} as commitment_end_ms
from {{ landed('charges') }}
where {{ in_window('date') }}
