-- grain: one row per part of a job run, node, hour and stretch of it in one pool: resource-time held
-- Time on a node that the inventory lacks joins the pool of the job's partition, else `unmapped`.
{%- set node_hour = ['usage_date', 'part_number', 'node_name', 'hour_ms'] %}

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
        job_nodes.part_number,
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
            and job_nodes.part_number = job_parts.part_number
    {{ cross_join_series(hour_start_ms('job_parts.part_start_ms'), 'job_parts.part_end_ms', 3600000, 'hour_ms') }}
),

in_inventory as (
    select
        hours.usage_date,
        hours.part_number,
        hours.node_name,
        hours.hour_ms,
        inventory.pool_id,
        inventory.gpu_model,
        greatest(hours.start_ms, inventory.start_ms) as start_ms,
        least(hours.end_ms, inventory.end_ms) as end_ms
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
        {{ node_hour | join(', ') }},
        min(start_ms) as start_ms,
        sum(end_ms - start_ms) as held_ms
    from in_inventory
    group by {{ node_hour | join(', ') }}
),

-- Part-hours of which the inventory lacks something: from the first moment to the first stay, and from stay to stay.
incomplete as (
    select
        hours.*,
        coalesce(known_time.start_ms, hours.end_ms) as first_stay_ms
    from hours
    left join known_time on {{ equal_on('hours', 'known_time', node_hour) }}
    where hours.end_ms - hours.start_ms > coalesce(known_time.held_ms, 0)
),

gaps as (
    select
        {{ node_hour | join(', ') }},
        cluster_id,
        partition_name,
        start_ms,
        first_stay_ms as end_ms
    from incomplete
    union all
    select
        {{ qualified('incomplete', node_hour) }},
        incomplete.cluster_id,
        incomplete.partition_name,
        in_inventory.end_ms as start_ms,
        coalesce(
            lead(in_inventory.start_ms) over (
                partition by {{ qualified('incomplete', node_hour) }} order by in_inventory.start_ms
            ),
            incomplete.end_ms
        ) as end_ms
    from incomplete
    inner join in_inventory on {{ equal_on('incomplete', 'in_inventory', node_hour) }}
),

outside_inventory as (
    select
        {{ qualified('gaps', node_hour) }},
        coalesce(min(partition_pools.pool_id), 'unmapped') as pool_id,
        gaps.start_ms,
        gaps.end_ms
    from gaps
    left join partition_pools
        on
            gaps.cluster_id = partition_pools.cluster_id
            and gaps.partition_name = partition_pools.partition_name
            and {{ valid_on('partition_pools', 'gaps.usage_date') }}
    where gaps.end_ms > gaps.start_ms
    group by {{ qualified('gaps', node_hour) }}, gaps.start_ms, gaps.end_ms
),

placed as (
    select
        {{ node_hour | join(', ') }},
        pool_id,
        gpu_model,
        start_ms,
        end_ms,
        end_ms - start_ms as running_ms,
        true as is_in_inventory
    from in_inventory
    union all
    select
        {{ node_hour | join(', ') }},
        pool_id,
        cast(null as {{ dbt.type_string() }}) as gpu_model,
        start_ms,
        end_ms,
        sum(end_ms - start_ms) over (
            partition by {{ node_hour | join(', ') }} order by start_ms
            rows between unbounded preceding and current row
        ) as running_ms,
        false as is_in_inventory
    from outside_inventory
),

-- Suspended time still holds GPUs and memory, but no cores. Only its total is known, so it thins out every hour. The
-- pieces of time outside the inventory are thinned out together.
final as (
    select
        placed.usage_date,
        placed.hour_ms,
        hours.cluster_id,
        placed.node_name,
        placed.pool_id,
        placed.gpu_model,
        placed.is_in_inventory,
        hours.job_key,
        hours.part_id,
        placed.part_number,
        hours.payer_partition_name as partition_name,
        hours.team_id,
        hours.project_id,
        hours.user_name,
        placed.start_ms,
        placed.end_ms,
        placed.end_ms - placed.start_ms as held_ms,
        {{ as_weight('hours.gpu_units * (placed.end_ms - placed.start_ms)') }} as gpu_held,
        -- Time of devices, of which samples tell: a slice of a GPU is one device, too.
        {{ floor_divide('hours.gpu_units + 25199', '25200') }} * (placed.end_ms - placed.start_ms) as gpu_device_ms,
        {{ as_weight('hours.cpu_millicores') }} * case
            when hours.suspended_ms > 0 and hours.suspended_ms <= hours.run_ms
                then
                    {{ share('placed.running_ms', '(hours.run_ms - hours.suspended_ms)', 'hours.run_ms', 0) }}
                    - {{ share(
                        'placed.running_ms - (placed.end_ms - placed.start_ms)',
                        '(hours.run_ms - hours.suspended_ms)',
                        'hours.run_ms',
                        0
                    ) }}
            else placed.end_ms - placed.start_ms
        end as cpu_held,
        {{ as_weight('hours.memory_mib * (placed.end_ms - placed.start_ms)') }} as memory_held
    from placed
    inner join hours on {{ equal_on('placed', 'hours', node_hour) }}
)

select * from final
