-- grain: one row per bill line and UTC day that it may cost something on
-- The first cost rule valid on the day decides what a line is: component, pool, driver, owner. Over what time it is
-- spread is decided once for the whole line, by the rule valid on the first day of its billing period; otherwise a rule
-- that changes in between would book a part of the line twice, or never. What was committed to and not used is nobody's
-- capacity: unless a rule makes it overhead of some other pool, it is kept in the pool `commitments`, out of every rate.
{%- set is_unused = "charges.commitment_status = 'Unused' and coalesce(components.cost_grain, 'hour') = 'hour'" %}

with charges as (
    select
        charges.*,
        cast(billing_period_start_at as date) as billing_period_date,
        {{ key_of(['provider', 'charge_category', 'service_name', 'sku_id', 'resource_id', 'tags']) }} as subject_key
    from {{ ref('stg_billing__charges') }} as charges
),

rules as (
    select * from {{ ref('stg_policy__cost_rules') }}
),

components as (
    select * from {{ ref('stg_reference__components') }}
),

subjects as (
    select distinct
        subject_key,
        provider,
        charge_category,
        service_name,
        sku_id,
        resource_id,
        tags
    from charges
),

subject_days as (
    select
        subject_key,
        usage_date
    from charges
    union distinct
    select
        subject_key,
        billing_period_date as usage_date
    from charges
),

matches as (
    {{ rule_matches('subjects', 'rules', ['provider', 'charge_category', 'service_name', 'sku_id', 'resource_id'], {'tags': 'tag'}) }}
),

first_rules as (
    {{ first_rule_of_day('subject_days', 'matches', 'rules') }}
),

classified as (
    select
        charges.*,
        rules.policy_row as cost_rule,
        case when {{ is_unused }} then 'other' else coalesce(rules.component, 'other') end as rule_component,
        case when {{ is_unused }} then 'commitments' else rules.pool_id end as rule_pool_id,
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
    left join first_rules
        on charges.subject_key = first_rules.subject_key and charges.usage_date = first_rules.usage_date
    left join rules on first_rules.rule_order = rules.rule_order and {{ valid_on('rules', 'charges.usage_date') }}
    left join components on rules.component = components.component
    left join first_rules as first_spread_rules
        on
            charges.subject_key = first_spread_rules.subject_key
            and charges.billing_period_date = first_spread_rules.usage_date
    left join rules as spread_rules
        on
            first_spread_rules.rule_order = spread_rules.rule_order
            and {{ valid_on('spread_rules', 'charges.billing_period_date') }}
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
