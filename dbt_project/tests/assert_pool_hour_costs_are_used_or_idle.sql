{{ config(meta={"dagster": {"ref": {"name": "int_pool_hour_costs"}}}) }}
-- law 1: where a pool-hour has capacity, its used and idle parts add up to its cost; where it has none, they are nothing
with pool_hours as (
    select
        pool_hours.*,
        used_cost + down_cost + reserved_cost + stranded_cost + unscheduled_cost as parts_cost
    from {{ ref('int_pool_hour_costs') }} as pool_hours
    where {{ in_window('usage_date') }}
)

select
    usage_date,
    {{ timestamp_of('hour_ms') }} as hour_at,
    pool_id,
    component,
    currency,
    has_capacity,
    cost,
    parts_cost
from pool_hours
where parts_cost <> case when has_capacity then cost else 0 end
