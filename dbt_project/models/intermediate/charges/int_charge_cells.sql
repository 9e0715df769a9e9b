-- grain: one row per bill line, UTC day, pool, component and hour (no hour for components that work by day)
-- A component that works by day has one cell, which is the line's whole part of the day.
{%- set columns = [
    'hour_ms', 'currency', 'driver', 'owner_team_id', 'owner_project_id', 'list_cost', 'billed_cost', 'effective_cost'
] %}

with daily_cells as (
    select
        usage_date,
        charge_key,
        rule_pool_id as pool_id,
        rule_component as component,
        cast(null as int64) as hour_ms,
        {{ columns[1:] | join(', ') }}
    from {{ ref('int_charge_days') }}
    where not is_hourly
),

hourly_cells as (
    select
        usage_date,
        charge_key,
        pool_id,
        component,
        {{ columns | join(', ') }}
    from {{ ref('int_charge_hours') }}
),

cells as (
    select * from daily_cells
    union all
    select * from hourly_cells
),

final as (
    select
        cells.*,
        {{ var('cost_basis') }}_cost as allocatable_cost
    from cells
)

select * from final
