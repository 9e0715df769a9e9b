{{ config(meta={"dagster": {"ref": {"name": "stg_inventory__nodes"}}}) }}
-- A node is in one pool at any instant: a stay that begins before an earlier one has ended would count its capacity twice.
with stays as (
    select
        stays.*,
        max(end_ms) over earlier_stays as taken_until_ms,
        last_value(pool_id) over earlier_stays as earlier_pool_id
    from {{ ref('stg_inventory__nodes') }} as stays
    window earlier_stays as (
        partition by usage_date, cluster_id, node_name
        order by start_ms, end_ms
        rows between unbounded preceding and 1 preceding
    )
)

select
    usage_date,
    cluster_id,
    node_name,
    earlier_pool_id,
    pool_id,
    valid_from_at as second_stay_begins_at,
    {{ timestamp_of('taken_until_ms') }} as first_stay_ends_at,
    'end the first stay in the inventory where the second begins' as remedy
from stays
where start_ms < taken_until_ms
