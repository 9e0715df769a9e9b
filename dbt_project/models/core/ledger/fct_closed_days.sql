-- grain: one row per UTC day of a closed month
select
    usage_date,
    {{ month_of('usage_date') }} as period_date,
    close_number,
    policy_hash,
    bill_hash,
    records_hash,
    retroactive_policy_hash,
    retroactive_reason
from {{ ref('int_closed_days') }}
