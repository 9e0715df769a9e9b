-- grain: one row per stay of a node in a pool and UTC day
with days as (
    select * from {{ ref('int_days') }}
),

nodes as (
    select * from {{ ref('stg_inventory__nodes') }}
)

select
    days.usage_date,
    nodes.cluster_id,
    nodes.node_name,
    nodes.resource_id,
    nodes.provider,
    nodes.instance_type,
    nodes.pool_id,
    nodes.gpu_model,
    nodes.gpu_units,
    nodes.cpu_millicores,
    nodes.memory_mib,
    nodes.valid_from_at,
    nodes.valid_to_at
from days
inner join nodes on days.usage_date = nodes.usage_date
