-- grain: one row per bill line and UTC day that it covers
-- A line gives each day the part of its time that falls on it. The parts of all its days telescope to the line,
-- and each is known without looking at another day.
with charges as (
    select * from {{ ref('int_charges_classified') }}
),

days as (
    select * from {{ ref('int_days') }}
),

timed as (
    select
        charges.*,
        greatest(days.day_start_ms, charges.spread_start_ms) as part_start_ms,
        least(days.day_end_ms, charges.spread_end_ms) as part_end_ms
    from charges
    inner join days on charges.usage_date = days.usage_date
    where days.day_start_ms < charges.spread_end_ms and days.day_end_ms > charges.spread_start_ms
),

final as (
    select
        timed.usage_date,
        timed.charge_key,
        timed.source_name,
        timed.provider,
        timed.invoice_id,
        timed.currency,
        timed.charge_category,
        timed.charge_description,
        timed.service_name,
        timed.resource_id,
        timed.tags,
        timed.is_final,
        timed.billing_period_start_at,
        timed.spread_start_ms,
        timed.spread_end_ms,
        timed.part_start_ms,
        timed.part_end_ms,
        timed.cost_rule,
        timed.rule_component,
        timed.rule_pool_id,
        timed.driver,
        timed.has_owner,
        {%- for amount in ['list_cost', 'billed_cost', 'effective_cost'] %}
        {{ share('timed.' ~ amount, 'timed.part_end_ms - timed.spread_start_ms', 'timed.spread_end_ms - timed.spread_start_ms') }}
        - {{ share('timed.' ~ amount, 'timed.part_start_ms - timed.spread_start_ms', 'timed.spread_end_ms - timed.spread_start_ms') }}
            as {{ amount }},
        {%- endfor %}
        timed.billed_cost as line_billed_cost
    from timed
)

select * from final
