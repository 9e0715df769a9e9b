-- grain: one row per bill line of an hourly component, UTC day, pool, component and hour (no hour if it is in no pool)
-- A line that names a known node follows the node through its pools; any other follows its cost rule. Its part of the day
-- is split once over these cells, by time and by the price weight of the component.
{%- set amounts = ['list_cost', 'billed_cost', 'effective_cost'] %}

with charge_days as (
    select
        charge_days.*,
        greatest(charge_days.spread_start_ms, {{ day_start_ms('charge_days.usage_date') }}) as start_ms,
        least(charge_days.spread_end_ms, {{ day_start_ms('charge_days.usage_date') }} + 86400000) as end_ms
    from {{ ref('int_charge_days') }} as charge_days
    where charge_days.is_hourly
),

nodes as (
    select * from {{ ref('stg_inventory__nodes') }}
),

pools as (
    select * from {{ ref('stg_policy__pools') }}
),

price_weights as (
    select * from {{ ref('int_instance_prices') }}
    where total_weight > 0
),

hours as (
    select
        charge_days.usage_date,
        charge_days.charge_key,
        charge_days.resource_id,
        charge_days.rule_component,
        charge_days.rule_pool_id,
        hour_ms,
        greatest(charge_days.start_ms, hour_ms) as start_ms,
        least(charge_days.end_ms, hour_ms + 3600000) as end_ms
    from charge_days
    {{ cross_join_series(hour_start_ms('charge_days.start_ms'), 'charge_days.end_ms', 3600000, 'hour_ms') }}
),

on_nodes as (
    select
        hours.usage_date,
        hours.charge_key,
        hours.rule_component,
        hours.hour_ms,
        nodes.pool_id,
        nodes.instance_type,
        nodes.gpu_units > 0 as has_gpus,
        least(hours.end_ms, nodes.end_ms) - greatest(hours.start_ms, nodes.start_ms) as cell_ms
    from hours
    inner join nodes
        on
            hours.usage_date = nodes.usage_date
            and hours.resource_id = nodes.resource_id
            and hours.start_ms < nodes.end_ms
            and hours.end_ms > nodes.start_ms
),

followed as (
    select distinct
        usage_date,
        charge_key
    from on_nodes
),

by_rule as (
    select
        hours.usage_date,
        hours.charge_key,
        hours.rule_component,
        hours.hour_ms,
        hours.rule_pool_id as pool_id,
        pools.default_instance_type as instance_type,
        pools.gpu_model is not null as has_gpus,
        hours.end_ms - hours.start_ms as cell_ms
    from hours
    left join followed on hours.usage_date = followed.usage_date and hours.charge_key = followed.charge_key
    left join pools on hours.rule_pool_id = pools.pool_id and {{ valid_on('pools', 'hours.usage_date') }}
    where followed.charge_key is null and hours.rule_pool_id is not null
),

places as (
    select * from on_nodes
    union all
    select * from by_rule
),

cells as (
    select
        places.usage_date,
        places.charge_key,
        places.pool_id,
        case
            when places.rule_component <> 'node' then places.rule_component
            when price_weights.component is not null then price_weights.component
            -- No price weights are known: the node's main resource carries the whole.
            when places.has_gpus then 'gpu'
            else 'cpu'
        end as component,
        places.hour_ms,
        {{ as_weight('sum(places.cell_ms * coalesce(price_weights.price_weight, 1000000))') }} as weight
    from places
    left join price_weights
        on
            places.rule_component = 'node'
            and places.instance_type = price_weights.instance_type
            and {{ valid_on('price_weights', 'places.usage_date') }}
    group by 1, 2, 3, 4, 5
),

priced as (
    select
        charge_days.usage_date,
        charge_days.charge_key,
        case when cells.charge_key is null then 'unmapped' else cells.pool_id end as pool_id,
        case when cells.charge_key is null then 'other' else cells.component end as component,
        cells.hour_ms,
        coalesce(cells.weight, 1) as weight,
        charge_days.currency,
        charge_days.driver,
        charge_days.owner_team_id,
        charge_days.owner_project_id,
        {{ qualified('charge_days', amounts) }}
    from charge_days
    left join cells on charge_days.usage_date = cells.usage_date and charge_days.charge_key = cells.charge_key
    where coalesce(cells.weight, 1) > 0
),

parts as (
    {{ split(
        'priced', amounts, 'weight',
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
        driver,
        owner_team_id,
        owner_project_id,
        {%- for amount in amounts %}
        {{ amount }}_part as {{ amount }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from parts
)

select * from final
