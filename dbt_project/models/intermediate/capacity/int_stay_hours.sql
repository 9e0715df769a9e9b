-- grain: one row per stay of a node in a pool and hour of it
with inventory as (
    select * from {{ ref('stg_inventory__nodes') }}
),

days as (
    select * from {{ ref('int_days') }}
),

stays as (
    select
        inventory.usage_date,
        inventory.cluster_id,
        inventory.node_name,
        inventory.pool_id,
        inventory.gpu_units,
        inventory.cpu_millicores,
        inventory.memory_mib,
        greatest(inventory.start_ms, days.day_start_ms) as start_ms,
        least(inventory.end_ms, days.day_end_ms) as end_ms
    from inventory
    inner join days on inventory.usage_date = days.usage_date
),

final as (
    select
        stays.usage_date,
        hour_ms,
        stays.cluster_id,
        stays.node_name,
        stays.pool_id,
        stays.gpu_units,
        stays.cpu_millicores,
        stays.memory_mib,
        greatest(stays.start_ms, hour_ms) as start_ms,
        least(stays.end_ms, hour_ms + 3600000) as end_ms
    from stays
    {{ cross_join_series(hour_start_ms('stays.start_ms'), 'stays.end_ms', 3600000, 'hour_ms') }}
)

select * from final
