-- grain: one row per reservation and UTC day
select
    date as usage_date,
    cluster_id,
    reservation_name,
    node_names,
    accounts,
    users,
    {{ milliseconds('start_at') }} as start_ms,
    {{ milliseconds('end_at') }} as end_ms
from {{ landed('reservations') }}
where {{ in_window('date') }}
