-- grain: one row per stay of a node in a pool and UTC day
select
    usage_date,
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
    valid_from_at,
    valid_to_at
from {{ ref('stg_inventory__nodes') }}
