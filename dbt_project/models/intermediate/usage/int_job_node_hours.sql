-- grain: one row per part of a job run, node, stay of the node in a pool and hour: resource-time held
-- Time on a node that the inventory lacks joins the pool of the job's partition, else `unmapped`.
with job_parts as (
    select * from {{ ref('int_job_parts') }}
),

job_nodes as (
    select * from {{ ref('int_job_nodes') }}
),

inventory as (
    select * from {{ ref('stg_inventory__nodes') }}
),

partition_pools as (
    select
        cluster_id,
        partition_name,
        pool_id,
        valid_from,
        valid_to
    from {{ ref('stg_policy__pools') }}
    where pool_kind = 'compute' and partition_name is not null
),

hours as (
    select
        job_nodes.usage_date,
        job_nodes.cluster_id,
        job_nodes.job_key,
        job_parts.part_id,
        job_nodes.part_key,
        job_nodes.node_name,
        job_nodes.gpu_units,
        job_nodes.cpu_millicores,
        job_nodes.memory_mib,
        job_parts.partition_name,
        job_parts.payer_partition_name,
        job_parts.team_id,
        job_parts.project_id,
        job_parts.payer_user_name as user_name,
        job_parts.end_ms - job_parts.start_ms as run_ms,
        job_parts.suspended_ms,
        hour_ms,
        greatest(job_parts.part_start_ms, hour_ms) as start_ms,
        least(job_parts.part_end_ms, hour_ms + 3600000) as end_ms
    from job_nodes
    inner join job_parts
        on
            job_nodes.usage_date = job_parts.usage_date
            and job_nodes.part_key = job_parts.part_key
    {{ cross_join_series(hour_start_ms('job_parts.part_start_ms'), 'job_parts.part_end_ms', 3600000, 'hour_ms') }}
),

in_inventory as (
    select
        hours.usage_date,
        hours.part_key,
        hours.node_name,
        hours.hour_ms,
        inventory.pool_id,
        least(hours.end_ms, inventory.end_ms) - greatest(hours.start_ms, inventory.start_ms) as held_ms
    from hours
    inner join inventory
        on
            hours.usage_date = inventory.usage_date
            and hours.cluster_id = inventory.cluster_id
            and hours.node_name = inventory.node_name
            and hours.start_ms < inventory.end_ms
            and hours.end_ms > inventory.start_ms
),

known_time as (
    select
        usage_date,
        part_key,
        node_name,
        hour_ms,
        sum(held_ms) as held_ms
    from in_inventory
    group by usage_date, part_key, node_name, hour_ms
),

outside_inventory as (
    select
        hours.usage_date,
        hours.part_key,
        hours.node_name,
        hours.hour_ms,
        coalesce(min(partition_pools.pool_id), 'unmapped') as pool_id,
        min(hours.end_ms - hours.start_ms - coalesce(known_time.held_ms, 0)) as held_ms
    from hours
    left join known_time
        on
            hours.usage_date = known_time.usage_date
            and hours.part_key = known_time.part_key
            and hours.node_name = known_time.node_name
            and hours.hour_ms = known_time.hour_ms
    left join partition_pools
        on
            hours.cluster_id = partition_pools.cluster_id
            and hours.partition_name = partition_pools.partition_name
            and {{ valid_on('partition_pools', 'hours.usage_date') }}
    where hours.end_ms - hours.start_ms > coalesce(known_time.held_ms, 0)
    group by hours.usage_date, hours.part_key, hours.node_name, hours.hour_ms
),

placed as (
    select
        in_inventory.*,
        true as is_in_inventory
    from in_inventory
    union all
    select
        outside_inventory.*,
        false as is_in_inventory
    from outside_inventory
),

-- Suspended time still holds GPUs and memory, but no cores. Only its total is known, so it thins out every hour.
final as (
    select
        placed.usage_date,
        placed.hour_ms,
        hours.cluster_id,
        placed.node_name,
        placed.pool_id,
        placed.is_in_inventory,
        hours.job_key,
        hours.part_id,
        placed.part_key,
        hours.payer_partition_name as partition_name,
        hours.team_id,
        hours.project_id,
        hours.user_name,
        placed.held_ms,
        {{ as_weight('hours.gpu_units * placed.held_ms') }} as gpu_held,
        {{ as_weight('hours.cpu_millicores') }} * case
            when hours.suspended_ms > 0 and hours.suspended_ms <= hours.run_ms
                then {{ share('placed.held_ms', '(hours.run_ms - hours.suspended_ms)', 'hours.run_ms', 0) }}
            else placed.held_ms
        end as cpu_held,
        {{ as_weight('hours.memory_mib * placed.held_ms') }} as memory_held
    from placed
    inner join hours
        on
            placed.usage_date = hours.usage_date
            and placed.part_key = hours.part_key
            and placed.node_name = hours.node_name
            and placed.hour_ms = hours.hour_ms
)

select * from final
