-- grain: one row per part of a job run, node, hour and stretch of it in one pool: resource-time held, and what samples say
-- Nearly every part runs while its node stays in one pool, which settles all its hours at once. The others are cut at the
-- node's stays; time on a node that the inventory lacks joins the pool of the job's partition, else `unmapped`.
-- What samples that name the part add up to is on its first stretch in the hour: a table of its own would write each row again.
{%- set node_hour = ['usage_date', 'part_number', 'node_name', 'hour_ms'] %}
{%- set of_part = [
    'usage_date', 'cluster_id', 'node_name', 'job_number', 'part_number', 'part_id', 'gpu_units', 'cpu_millicores', 'memory_mib',
    'run_ms', 'suspended_ms',
] %}
{%- set pool_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set activity = ['sm_sampled_ms', 'sm_millipercent_ms', 'tensor_sampled_ms', 'tensor_millipercent_ms'] %}

with inventory as (
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

located as (
    select
        job_nodes.*,
        inventory.pool_id,
        inventory.gpu_model
    from {{ ref('int_job_nodes') }} as job_nodes
    left join inventory
        on
            job_nodes.usage_date = inventory.usage_date
            and job_nodes.cluster_id = inventory.cluster_id
            and job_nodes.node_name = inventory.node_name
            and job_nodes.part_start_ms >= inventory.start_ms
            and job_nodes.part_end_ms <= inventory.end_ms
),

settled_hours as (
    select
        located.*,
        {{ hour_start_ms('located.part_start_ms') }} + hour_steps.hour_number * 3600000 as hour_ms
    from located
    inner join {{ ref('int_hour_steps') }} as hour_steps
        on
            {{ floor_divide('located.part_end_ms - ' ~ hour_start_ms('located.part_start_ms') ~ ' + 3599999', '3600000') }}
            = hour_steps.hour_count
    where located.pool_id is not null
),

settled as (
    select
        {{ of_part | join(', ') }},
        pool_id,
        gpu_model,
        hour_ms,
        greatest(part_start_ms, hour_ms) as start_ms,
        least(part_end_ms, hour_ms + 3600000) as end_ms,
        least(part_end_ms, hour_ms + 3600000) - greatest(part_start_ms, hour_ms) as running_ms,
        true as is_in_inventory,
        least(part_end_ms, hour_ms + 3600000) - greatest(part_start_ms, hour_ms) as part_held_ms,
        true as is_first_stretch,
        is_whole_job as is_alone
    from settled_hours
),

hours as (
    select
        located.*,
        hour_ms,
        greatest(located.part_start_ms, hour_ms) as start_ms,
        least(located.part_end_ms, hour_ms + 3600000) as end_ms
    from located
    {{ cross_join_series(hour_start_ms('located.part_start_ms'), 'located.part_end_ms', 3600000, 'hour_ms') }}
    where located.pool_id is null
),

in_inventory as (
    select
        {{ qualified('hours', node_hour) }},
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

-- The pieces of time outside the inventory are thinned out together, should the job have been suspended.
pieces as (
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

cut as (
    select
        {{ qualified('hours', of_part) }},
        pieces.pool_id,
        pieces.gpu_model,
        pieces.hour_ms,
        pieces.start_ms,
        pieces.end_ms,
        cast(pieces.running_ms as int64) as running_ms,
        pieces.is_in_inventory,
        cast(
            sum(pieces.end_ms - pieces.start_ms) over (partition by {{ qualified('pieces', node_hour) }}, pieces.pool_id) as int64
        ) as part_held_ms,
        row_number() over (
            partition by {{ qualified('pieces', node_hour) }}, pieces.pool_id order by pieces.start_ms
        ) = 1 as is_first_stretch,
        false as is_alone
    from pieces
    inner join hours on {{ equal_on('pieces', 'hours', node_hour) }}
),

placed as (
    select * from settled
    union all
    select * from cut
),

gpu_hours as (
    select * from {{ ref('int_gpu_hours') }}
    where part_id is not null
),

-- Suspended time still holds GPUs and memory, but no cores. Only its total is known, so it thins out every hour.
final as (
    select
        placed.usage_date,
        {{ qualified('placed', pool_hour) }},
        placed.gpu_model,
        placed.is_in_inventory,
        -- Whether this is surely the only row of its job on the node in the hour, and samples that name it mean no other.
        placed.is_alone,
        placed.job_number,
        placed.part_number,
        placed.start_ms,
        placed.end_ms,
        placed.part_held_ms,
        placed.gpu_units * (placed.end_ms - placed.start_ms) as gpu_held,
        -- Time of devices, of which samples tell: a slice of a GPU is one device, too.
        {{ floor_divide('placed.gpu_units + 25199', '25200') }} * (placed.end_ms - placed.start_ms) as gpu_device_ms,
        placed.cpu_millicores * case
            when placed.suspended_ms > 0 and placed.suspended_ms <= placed.run_ms
                then cast(
                    {{ share('placed.running_ms', '(placed.run_ms - placed.suspended_ms)', 'placed.run_ms', 0) }}
                    - {{ share(
                        'placed.running_ms - (placed.end_ms - placed.start_ms)',
                        '(placed.run_ms - placed.suspended_ms)',
                        'placed.run_ms',
                        0
                    ) }}
                    as int64
                )
            else placed.end_ms - placed.start_ms
        end as cpu_held,
        placed.memory_mib * (placed.end_ms - placed.start_ms) as memory_held,
        {{ qualified('activity', activity) }},
        gpu_hours.busy_sampled_ms,
        gpu_hours.busy_millipercent_ms,
        case when gpu_hours.energy_sampled_ms > 0 then gpu_hours.energy_microjoules end as energy_microjoules
    from placed
    left join gpu_hours
        on
            {{ equal_on('placed', 'gpu_hours', pool_hour) }}
            and placed.part_id = gpu_hours.part_id
            and placed.is_first_stretch
    left join {{ ref('int_activity_hours') }} as activity
        on
            {{ equal_on('placed', 'activity', pool_hour) }}
            and placed.part_number = activity.part_number
            and placed.is_first_stretch
)

select * from final
