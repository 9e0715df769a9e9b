-- grain: one row per UTC day of a closed month
-- What the ledger holds of the day: its state at the newest close that looked at it, and what was let into it since.
with newest_states as (
    select *
    from {{ ref('stg_ledger__days') }}
    qualify row_number() over (partition by usage_date order by close_number desc) = 1
),

last_close as (
    select max(close_number) as close_number from {{ ref('stg_ledger__days') }}
),

changes as (
    select retroactive_days.*
    from {{ ref('stg_ledger__retroactive_days') }} as retroactive_days
    inner join last_close on retroactive_days.after_close_number = last_close.close_number
    qualify row_number() over (
        partition by retroactive_days.usage_date order by retroactive_days.recorded_at desc, retroactive_days.policy_hash asc
    ) = 1
)

select
    newest_states.usage_date,
    newest_states.close_number,
    newest_states.policy_hash,
    newest_states.bill_hash,
    newest_states.records_hash,
    changes.policy_hash as retroactive_policy_hash,
    changes.reason as retroactive_reason
from newest_states
left join changes on newest_states.usage_date = changes.usage_date
