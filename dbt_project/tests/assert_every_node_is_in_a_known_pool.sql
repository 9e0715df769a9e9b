-- A pool that no row of pools.csv describes has no kind, no owner and no name.
{{ config(meta={'dagster': {'ref': {'name': 'stg_inventory__nodes'}}}) }}

with nodes as (
    select * from {{ ref('stg_inventory__nodes') }}
),

pools as (
    select * from {{ ref('stg_policy__pools') }}
)

select
    nodes.cluster_id,
    nodes.node_name,
    'the inventory puts the node into pool ' || nodes.pool_id || ', which policy/pools.csv does not know on '
    || cast(min(nodes.usage_date) as {{ dbt.type_string() }}) as problem,
    'add the pool to policy/pools.csv, or mend the inventory' as remedy
from nodes
left join pools on nodes.pool_id = pools.pool_id and {{ valid_on('pools', 'nodes.usage_date') }}
where pools.pool_id is null
group by nodes.cluster_id, nodes.node_name, nodes.pool_id
