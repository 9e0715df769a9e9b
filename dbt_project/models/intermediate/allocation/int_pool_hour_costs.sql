-- grain: one row per pool, hourly component, currency and hour: its cost, split into used and idle by cause
{%- set uses = ['used', 'down', 'reserved', 'stranded', 'unscheduled'] %}

with cells as (
    select * from {{ ref('int_charge_cells') }}
    where hour_ms is not null
),

pool_hours as (
    select * from {{ ref('int_pool_hours') }}
),

costs as (
    select
        usage_date,
        hour_ms,
        pool_id,
        component,
        currency,
        cast(sum(allocatable_cost) as numeric(38, 9)) as cost
    from cells
    group by usage_date, hour_ms, pool_id, component, currency
),

weighted as (
    select
        costs.*,
        coalesce(pool_hours.is_measured, false) as is_measured,
        {%- for use in uses %}
        coalesce(pool_hours.{{ use }}, 0) as {{ use }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from costs
    left join pool_hours
        on
            costs.usage_date = pool_hours.usage_date
            and costs.hour_ms = pool_hours.hour_ms
            and costs.pool_id = pool_hours.pool_id
            and costs.component = pool_hours.component
),

final as (
    select
        weighted.*,
        used + down + reserved + stranded + unscheduled > 0 as has_capacity,
        {{ split_over_columns('cost', uses) }}
    from weighted
)

select * from final
