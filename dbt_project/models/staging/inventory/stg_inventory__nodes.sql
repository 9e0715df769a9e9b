-- grain: one row per stay of a node in a pool, and UTC day
select
    date as usage_date,
    cluster_id,
    node_name,
    resource_id,
    provider,
    instance_type,
    pool_id,
    gpu_model,
    gpu_units,
    cpu_millicores,
    memory_mib,
    {{ utc_timestamp('valid_from_at') }} as valid_from_at,
    {{ utc_timestamp('valid_to_at') }} as valid_to_at,
    {{ milliseconds('valid_from_at') }} as start_ms,
    coalesce({{ milliseconds('valid_to_at') }}, {{ day_start_ms('date') }} + 86400000) as end_ms
from {{ landed('node_inventory') }}
where {{ in_window('date') }}
