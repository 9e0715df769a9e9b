-- grain: one row per bill line and UTC day that it may cost something on
-- The cost rule of its kind and day decides what a line is: component, pool, driver, owner. Over what time it is
-- spread is decided once for the whole line, by the rule valid on the first day of its billing period; otherwise a rule
-- that changes in between would book a part of the line twice, or never. What was committed to and not used is nobody's
-- capacity: unless a rule makes it overhead of some other pool, it is kept in the pool `commitments`, out of every rate.
{%- set classes = [
    'provider_class', 'charge_category_class', 'service_name_class', 'sku_id_class', 'resource_id_class', 'tags_class'
] %}
{%- set is_unused = "charges.commitment_status = 'Unused' and coalesce(rules.cost_grain, 'hour') = 'hour'" %}

with charges as (
    select * from {{ ref('int_charge_kinds') }}
),

rules as (
    select * from {{ ref('int_charge_rules') }}
),

classified as (
    select
        charges.*,
        rules.cost_rule,
        case when {{ is_unused }} then 'other' else coalesce(rules.rule_component, 'other') end as rule_component,
        case when {{ is_unused }} then 'commitments' else rules.rule_pool_id end as rule_pool_id,
        case when {{ is_unused }} or rules.cost_rule is null then 'day' else rules.cost_grain end as cost_grain,
        rules.driver,
        coalesce(rules.has_owner, false) as has_owner,
        charges.charge_category <> 'Usage' and (
            spread_rules.spread = 'billing_period'
            or (
                spread_rules.spread is null
                and (
                    -- What comes with use, such as a discount on an hour, stays where the use is.
                    (
                        charges.charge_category in ('Credit', 'Adjustment', 'Tax')
                        and coalesce(charges.charge_frequency, 'One-Time') <> 'Usage-Based'
                    )
                    or (charges.charge_category = 'Purchase' and charges.charge_frequency = 'One-Time')
                )
            )
        ) as is_spread_over_billing_period
    from charges
    left join rules on charges.usage_date = rules.usage_date and {{ equal_on('charges', 'rules', classes) }}
    left join rules as spread_rules
        on charges.billing_period_date = spread_rules.usage_date and {{ equal_on('charges', 'spread_rules', classes) }}
),

final as (
    select
        classified.*,
        case when is_spread_over_billing_period then billing_period_start_ms else charge_start_ms end as spread_start_ms,
        case
            when is_spread_over_billing_period then billing_period_end_ms
            -- An instantaneous charge lives in its first millisecond.
            when charge_end_ms = charge_start_ms then charge_start_ms + 1
            else charge_end_ms
        end as spread_end_ms
    from classified
)

select * from final
