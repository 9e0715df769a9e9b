-- grain: one row per time a node was down or drained, and UTC day
select
    date as usage_date,
    cluster_id,
    node_name,
    state,
    reason,
    {{ milliseconds('start_at') }} as start_ms,
    {{ milliseconds('coalesce(end_at, as_of_at)') }} as end_ms
from {{ landed('node_events') }}
where {{ in_window('date') }}
