-- grain: one row per checked-out seat and UTC day
select
    date as usage_date,
    product,
    user_name,
    account,
    seats,
    {{ milliseconds('checked_out_at') }} as start_ms,
    {{ milliseconds('coalesce(checked_in_at, as_of_at)') }} as end_ms
from {{ landed('license_usage') }}
where {{ in_window('date') }}
