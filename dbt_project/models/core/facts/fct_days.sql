-- grain: one row per UTC day that has been built
select
    usage_date,
    policy_hash,
    input_hash,
    landed_rows,
    quarantined_rows
from {{ ref('int_days') }}
