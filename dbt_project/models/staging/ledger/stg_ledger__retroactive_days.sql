-- grain: one row per change of policy that was let into a closed month, and UTC day
select
    usage_date,
    policy_hash,
    after_close_number,
    {{ utc_timestamp('recorded_at') }} as recorded_at,
    recorded_by,
    reason
from {{ source('landing', 'retroactive_days') }}
