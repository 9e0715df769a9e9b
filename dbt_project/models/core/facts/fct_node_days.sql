-- grain: one row per stay of a node in a pool and UTC day
select
    usage_date,
    cluster_id,
    node_name,
    pool_id,
    resource_id,
    provider,
    instance_type,
    gpu_model,
    {{ quotient('gpu_units', '25200') }} as gpus,
    {{ quotient('cpu_millicores', '1000') }} as cores,
    {{ quotient('memory_mib', '1024') }} as memory_gib,
    valid_from_at,
    valid_to_at
from {{ ref('int_node_days') }}
