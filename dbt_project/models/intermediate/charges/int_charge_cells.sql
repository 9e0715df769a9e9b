-- grain: one row per bill line, UTC day, pool, component and hour (no hour for components that work by day)
-- Each day's part of a line is split once over its cells, by time and by the price weight of the component.
with charge_days as (
    select * from {{ ref('int_charge_days') }}
),

charge_hours as (
    select * from {{ ref('int_charge_hours') }}
),

components as (
    select * from {{ ref('stg_reference__components') }}
),

price_weights as (
    select * from {{ ref('int_instance_prices') }}
    where total_weight > 0
),

hourly_cells as (
    select
        charge_hours.usage_date,
        charge_hours.charge_key,
        charge_hours.pool_id,
        case
            when charge_hours.rule_component <> 'node' then charge_hours.rule_component
            when price_weights.component is not null then price_weights.component
            -- No price weights are known: the node's main resource carries the whole.
            when charge_hours.has_gpus then 'gpu'
            else 'cpu'
        end as component,
        charge_hours.hour_ms,
        charge_hours.cell_ms * coalesce(price_weights.price_weight, 1000000) as weight
    from charge_hours
    left join price_weights
        on
            charge_hours.rule_component = 'node'
            and charge_hours.instance_type = price_weights.instance_type
            and {{ valid_on('price_weights', 'charge_hours.usage_date') }}
),

placed as (
    select distinct
        usage_date,
        charge_key
    from charge_hours
),

daily_cells as (
    select
        charge_days.usage_date,
        charge_days.charge_key,
        case when components.cost_grain = 'day' then coalesce(charge_days.rule_pool_id, 'unmapped') else 'unmapped' end as pool_id,
        case when components.cost_grain = 'day' then charge_days.rule_component else 'other' end as component,
        cast(null as int64) as hour_ms,
        1 as weight
    from charge_days
    left join components on charge_days.rule_component = components.component
    left join placed
        on charge_days.usage_date = placed.usage_date and charge_days.charge_key = placed.charge_key
    where placed.charge_key is null
),

cells as (
    select
        usage_date,
        charge_key,
        pool_id,
        component,
        hour_ms,
        {{ as_weight('sum(weight)') }} as weight
    from (
        select * from hourly_cells
        union all
        select * from daily_cells
    ) as all_cells
    group by usage_date, charge_key, pool_id, component, hour_ms
),

priced as (
    select
        cells.*,
        charge_days.currency,
        charge_days.list_cost,
        charge_days.billed_cost,
        charge_days.effective_cost
    from cells
    inner join charge_days on cells.usage_date = charge_days.usage_date and cells.charge_key = charge_days.charge_key
    where cells.weight > 0
),

parts as (
    {{ split(
        'priced', ['list_cost', 'billed_cost', 'effective_cost'], 'weight',
        by=['usage_date', 'charge_key'],
        order_by=['pool_id', 'component', 'hour_ms']
    ) }}
),

final as (
    select
        usage_date,
        charge_key,
        pool_id,
        component,
        hour_ms,
        currency,
        list_cost_part as list_cost,
        billed_cost_part as billed_cost,
        effective_cost_part as effective_cost,
        {{ var('cost_basis') }}_cost_part as allocatable_cost
    from parts
)

select * from final
