-- grain: one row per UTC day that has been built
select
    usage_date,
    policy_hash,
    input_hash,
    bill_hash,
    records_hash,
    landed_rows,
    quarantined_rows
from {{ ref('int_days') }}
