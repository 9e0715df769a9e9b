-- grain: one row per node, as the newest built day knows it
select
    cluster_id,
    node_name,
    pool_id,
    resource_id,
    provider,
    instance_type,
    gpu_model,
    gpus,
    cores,
    memory_gib,
    usage_date as last_seen_date
from {{ ref('fct_node_days') }}
qualify row_number() over (partition by cluster_id, node_name order by usage_date desc, valid_from_at desc) = 1
