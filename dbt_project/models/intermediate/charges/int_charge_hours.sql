-- grain: one row per bill line, UTC day, hour, pool and instance type where an hourly component's cost sits
-- A line that names a known node follows the node through its pools; any other follows its cost rule.
with charge_days as (
    select * from {{ ref('int_charge_days') }}
),

components as (
    select * from {{ ref('stg_reference__components') }}
),

nodes as (
    select * from {{ ref('stg_inventory__nodes') }}
),

pools as (
    select * from {{ ref('stg_policy__pools') }}
),

hourly as (
    select
        charge_days.usage_date,
        charge_days.charge_key,
        charge_days.resource_id,
        charge_days.rule_component,
        charge_days.rule_pool_id,
        hour_ms,
        greatest(charge_days.part_start_ms, hour_ms) as start_ms,
        least(charge_days.part_end_ms, hour_ms + 3600000) as end_ms
    from charge_days
    left join components on charge_days.rule_component = components.component
    {{ cross_join_series(hour_start_ms('charge_days.part_start_ms'), 'charge_days.part_end_ms', 3600000, 'hour_ms') }}
    where charge_days.rule_component = 'node' or components.cost_grain = 'hour'
),

on_nodes as (
    select
        hourly.usage_date,
        hourly.charge_key,
        hourly.rule_component,
        hourly.hour_ms,
        nodes.pool_id,
        nodes.instance_type,
        nodes.gpu_units > 0 as has_gpus,
        sum(least(hourly.end_ms, nodes.end_ms) - greatest(hourly.start_ms, nodes.start_ms)) as cell_ms
    from hourly
    inner join nodes
        on
            hourly.usage_date = nodes.usage_date
            and hourly.resource_id = nodes.resource_id
            and hourly.start_ms < nodes.end_ms
            and hourly.end_ms > nodes.start_ms
    group by
        hourly.usage_date, hourly.charge_key, hourly.rule_component, hourly.hour_ms,
        nodes.pool_id, nodes.instance_type, nodes.gpu_units > 0
),

followed as (
    select distinct
        usage_date,
        charge_key
    from on_nodes
),

by_rule as (
    select
        hourly.usage_date,
        hourly.charge_key,
        hourly.rule_component,
        hourly.hour_ms,
        hourly.rule_pool_id as pool_id,
        pools.default_instance_type as instance_type,
        pools.gpu_model is not null as has_gpus,
        hourly.end_ms - hourly.start_ms as cell_ms
    from hourly
    left join followed on hourly.usage_date = followed.usage_date and hourly.charge_key = followed.charge_key
    left join pools on hourly.rule_pool_id = pools.pool_id and {{ valid_on('pools', 'hourly.usage_date') }}
    where followed.charge_key is null and hourly.rule_pool_id is not null
),

final as (
    select * from on_nodes
    union all
    select * from by_rule
)

select * from final
