-- grain: one row per kind of bill line and UTC day that a cost rule claims
-- The first cost rule valid on the day decides. Days are those of the bill and the first ones of its billing periods.
{%- set fields = ['provider', 'charge_category', 'service_name', 'sku_id', 'resource_id'] %}
{%- set classes = ['provider_class', 'charge_category_class', 'service_name_class', 'sku_id_class', 'resource_id_class', 'tags_class'] %}

with subjects as (
    select * from {{ ref('int_charge_subjects') }}
),

rules as (
    select * from {{ ref('stg_policy__cost_rules') }}
),

components as (
    select * from {{ ref('stg_reference__components') }}
),

days as (
    select usage_date from {{ ref('int_charge_kinds') }}
    union distinct
    select billing_period_date as usage_date from {{ ref('int_charge_kinds') }}
),

subject_days as (
    select
        subjects.subject_key,
        days.usage_date
    from subjects
    cross join days
),

matches as (
    {{ rule_matches('subjects', 'rules', fields, {'tags': 'tag'}) }}
),

first_rules as (
    {{ first_rule_of_day('subject_days', 'matches', 'rules') }}
),

final as (
    select
        {{ qualified('subjects', classes) }},
        first_rules.usage_date,
        rules.policy_row as cost_rule,
        rules.component as rule_component,
        rules.pool_id as rule_pool_id,
        rules.driver,
        rules.has_owner,
        rules.spread,
        -- `node` stands for the hourly components of a node.
        case when rules.component = 'node' then 'hour' else components.cost_grain end as cost_grain
    from first_rules
    inner join subjects on first_rules.subject_key = subjects.subject_key
    inner join rules
        on first_rules.rule_order = rules.rule_order and {{ valid_on('rules', 'first_rules.usage_date') }}
    left join components on rules.component = components.component
)

select * from final
