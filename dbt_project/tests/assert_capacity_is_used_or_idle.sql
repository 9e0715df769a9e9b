{{ config(meta={"dagster": {"ref": {"name": "int_node_hours"}}}) }}
-- law 2, nothing dropped: every GPU-, core- and memory-millisecond that the inventory has is in a node-hour, and is
-- used or idle with a cause; none of them is negative
{%- set resources = {'gpu': 'gpu_units', 'cpu': 'cpu_millicores', 'memory': 'memory_mib'} %}

with node_hours as (
    {%- for resource in resources %}
    select
        usage_date,
        hour_ms,
        cluster_id,
        node_name,
        pool_id,
        '{{ resource }}' as resource,
        {{ resource }}_inventory as inventory,
        {{ resource }}_capacity as capacity,
        {{ resource }}_held as held,
        {{ resource }}_down as down,
        {{ resource }}_reserved as reserved,
        {{ resource }}_stranded as stranded,
        {{ resource }}_unscheduled as unscheduled
    from {{ ref('int_node_hours') }}
    where {{ in_window('usage_date') }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

stays as (
    select
        stays.*,
        least(end_ms, {{ day_start_ms('usage_date') }} + 86400000) - greatest(start_ms, {{ day_start_ms('usage_date') }}) as stay_ms
    from {{ ref('stg_inventory__nodes') }} as stays
),

installed as (
    {%- for resource, amount in resources.items() %}
    select
        usage_date,
        cluster_id,
        node_name,
        '{{ resource }}' as resource,
        sum({{ as_weight(amount) }} * stay_ms) as installed
    from stays
    group by usage_date, cluster_id, node_name
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

known as (
    select
        usage_date,
        cluster_id,
        node_name,
        resource,
        sum(inventory) as installed
    from node_hours
    group by usage_date, cluster_id, node_name, resource
)

select
    usage_date,
    cluster_id,
    node_name,
    resource,
    {{ dbt.concat(["'pool '", "pool_id", "': used and idle do not add up to the capacity of the hour'"]) }} as problem,
    hour_ms,
    capacity as expected,
    held + down + reserved + stranded + unscheduled as found
from node_hours
where
    held + down + reserved + stranded + unscheduled <> capacity
    or least(held, down, reserved, stranded, unscheduled) < 0
union all
select
    installed.usage_date,
    installed.cluster_id,
    installed.node_name,
    installed.resource,
    'the hours of the node do not add up to what is installed on that day' as problem,
    cast(null as int64) as hour_ms,
    installed.installed as expected,
    known.installed as found
from installed
left join known
    on
        installed.usage_date = known.usage_date
        and installed.cluster_id = known.cluster_id
        and installed.node_name = known.node_name
        and installed.resource = known.resource
where installed.installed <> coalesce(known.installed, 0)
