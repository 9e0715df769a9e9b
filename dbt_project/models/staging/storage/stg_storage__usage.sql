-- grain: one row per stored path, owner and UTC day
select
    date as usage_date,
    filesystem,
    path,
    owner as user_name,
    account,
    stored_bytes,
    {{ milliseconds('valid_from_at') }} as start_ms,
    {{ milliseconds('valid_to_at') }} as end_ms
from {{ landed('storage_usage') }}
where {{ in_window('date') }}
