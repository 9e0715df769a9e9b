-- grain: one row per close and UTC day of a closed month that it saw for the first time, or changed
select
    close_number,
    usage_date,
    -- Empty where the day was not built.
    coalesce(policy_hash, '') as policy_hash,
    coalesce(bill_hash, '') as bill_hash,
    coalesce(records_hash, '') as records_hash
from {{ source('landing', 'closed_days') }}
