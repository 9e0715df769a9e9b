-- grain: one row per node, pool and hour: capacity, what jobs held of it, and the idle rest by cause
-- Causes take in order (down, reserved, stranded, unscheduled), each at most what is left; idle is never negative.
{%- set resources = {'gpu': 'gpu_units', 'cpu': 'cpu_millicores', 'memory': 'memory_mib'} %}

with stay_hours as (
    select * from {{ ref('int_stay_hours') }}
),

job_node_hours as (
    select * from {{ ref('int_job_node_hours') }}
),

unavailable_time as (
    select * from {{ ref('int_unavailable_time') }}
    where team_id is null
),

pools as (
    select * from {{ ref('stg_policy__pools') }}
),

unavailable as (
    select
        stay_hours.usage_date,
        stay_hours.cluster_id,
        stay_hours.node_name,
        stay_hours.pool_id,
        {%- for cause in ['down', 'reserved'] %}
        {%- for resource, amount in resources.items() %}
        sum(
            case
                when unavailable_time.cause = '{{ cause }}'
                    then {{ as_weight('stay_hours.' ~ amount) }} * (
                        least(stay_hours.end_ms, unavailable_time.end_ms)
                        - greatest(stay_hours.start_ms, unavailable_time.start_ms)
                    )
                else 0
            end
        ) as {{ resource }}_{{ cause }},
        {%- endfor %}
        {%- endfor %}
        stay_hours.hour_ms
    from stay_hours
    inner join unavailable_time
        on
            stay_hours.usage_date = unavailable_time.usage_date
            and stay_hours.cluster_id = unavailable_time.cluster_id
            and stay_hours.node_name = unavailable_time.node_name
            and stay_hours.start_ms < unavailable_time.end_ms
            and stay_hours.end_ms > unavailable_time.start_ms
    group by
        stay_hours.usage_date, stay_hours.cluster_id, stay_hours.node_name, stay_hours.pool_id, stay_hours.hour_ms
),

capacity_and_use as (
    select
        usage_date,
        cluster_id,
        node_name,
        pool_id,
        hour_ms,
        {%- for resource, amount in resources.items() %}
        {{ as_weight(amount) }} * (end_ms - start_ms) as {{ resource }}_inventory,
        {{ as_weight('0') }} as {{ resource }}_outside,
        {{ as_weight('0') }} as {{ resource }}_held,
        {%- endfor %}
        true as is_in_inventory
    from stay_hours
    union all
    select
        usage_date,
        cluster_id,
        node_name,
        pool_id,
        hour_ms,
        {%- for resource in resources %}
        -- A node that the inventory lacks has just what was used of it.
        {{ as_weight('0') }} as {{ resource }}_inventory,
        case when is_in_inventory then 0 else {{ resource }}_held end as {{ resource }}_outside,
        {{ resource }}_held,
        {%- endfor %}
        is_in_inventory
    from job_node_hours
),

node_hours as (
    select
        usage_date,
        cluster_id,
        node_name,
        pool_id,
        hour_ms,
        {%- for resource in resources %}
        sum({{ resource }}_inventory) as {{ resource }}_inventory,
        sum({{ resource }}_outside) as {{ resource }}_outside,
        sum({{ resource }}_held) as {{ resource }}_held,
        greatest(sum({{ resource }}_inventory) + sum({{ resource }}_outside), sum({{ resource }}_held)) as {{ resource }}_capacity,
        {%- endfor %}
        min(case when is_in_inventory then 1 else 0 end) = 1 as is_in_inventory
    from capacity_and_use
    group by usage_date, cluster_id, node_name, pool_id, hour_ms
),

with_down as (
    select
        node_hours.*,
        {%- for resource in resources %}
        least(
            node_hours.{{ resource }}_capacity - node_hours.{{ resource }}_held,
            coalesce(unavailable.{{ resource }}_down, 0)
        ) as {{ resource }}_down,
        coalesce(unavailable.{{ resource }}_reserved, 0) as {{ resource }}_under_reservation,
        {%- endfor %}
        coalesce(pools.min_cores_per_gpu, 1) as min_cores_per_gpu,
        coalesce(pools.min_gib_per_gpu, 1) as min_gib_per_gpu
    from node_hours
    left join unavailable
        on
            node_hours.usage_date = unavailable.usage_date
            and node_hours.cluster_id = unavailable.cluster_id
            and node_hours.node_name = unavailable.node_name
            and node_hours.pool_id = unavailable.pool_id
            and node_hours.hour_ms = unavailable.hour_ms
    left join pools on node_hours.pool_id = pools.pool_id and {{ valid_on('pools', 'node_hours.usage_date') }}
),

with_reserved as (
    select
        {%- for resource in resources %}
        least({{ resource }}_capacity - {{ resource }}_held - {{ resource }}_down, {{ resource }}_under_reservation)
            as {{ resource }}_reserved,
        {%- endfor %}
        with_down.*
    from with_down
),

with_rest as (
    select
        {%- for resource in resources %}
        {{ resource }}_capacity - {{ resource }}_held - {{ resource }}_down - {{ resource }}_reserved
            as {{ resource }}_rest,
        {%- endfor %}
        with_reserved.*
    from with_reserved
),

-- A free GPU is usable as far as the node's free cores and memory can feed it (25,200 units are one GPU).
with_usable as (
    select
        with_rest.*,
        least(
            gpu_rest,
            {{ floor_divide('cpu_rest * 25200', '1000 * min_cores_per_gpu') }},
            {{ floor_divide('memory_rest * 25200', '1024 * min_gib_per_gpu') }}
        ) as gpu_usable
    from with_rest
),

final as (
    select
        usage_date,
        hour_ms,
        cluster_id,
        node_name,
        pool_id,
        is_in_inventory,
        {%- for resource in resources %}
        {{ resource }}_inventory,
        {{ resource }}_capacity,
        {{ resource }}_held,
        {{ resource }}_down,
        {{ resource }}_reserved,
        {%- endfor %}
        gpu_rest - gpu_usable as gpu_stranded,
        gpu_usable as gpu_unscheduled,
        {{ as_weight('0') }} as cpu_stranded,
        cpu_rest as cpu_unscheduled,
        {{ as_weight('0') }} as memory_stranded,
        memory_rest as memory_unscheduled,
        gpu_held > gpu_inventory + gpu_outside
        or cpu_held > cpu_inventory + cpu_outside
        or memory_held > memory_inventory + memory_outside as is_overcommitted
    from with_usable
)

select * from final
