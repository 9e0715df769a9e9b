-- grain: one row per field of the bill that cost rules read, and value of it that some rule fits
-- Values that the same rules fit are alike: they have one class, and the smallest of them stands for all. What no rule fits
-- is as good as absent. So the rules are held against a few kinds of lines, however many resources the bill names.
{%- set fields = ['provider', 'charge_category', 'service_name', 'sku_id', 'resource_id'] %}

with charges as (
    select * from {{ ref('stg_billing__charges') }}
),

rules as (
    select * from {{ ref('stg_policy__cost_rules') }}
),

found_values as (
    {%- for field in fields %}
    select distinct
        '{{ field }}' as field_name,
        {{ field }} as field_value
    from {{ ref('stg_billing__charges') }}
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
),

patterns as (
    {%- for field in fields %}
    select
        '{{ field }}' as field_name,
        {{ field }} as pattern,
        policy_row
    from rules
    where {{ field }} is not null
    {% if not loop.last %}union all{% endif %}
    {%- endfor %}
),

tag_pairs as (
    {{ json_pairs("(select distinct tags from charges where tags is not null)", 'tags') }}
),

fitting as (
    select
        found_values.field_name,
        found_values.field_value,
        patterns.policy_row
    from found_values
    inner join patterns
        on
            found_values.field_name = patterns.field_name
            and {{ fits('found_values.field_value', 'patterns.pattern') }}
    union distinct
    select
        'tags' as field_name,
        tag_pairs.tags as field_value,
        rules.policy_row
    from tag_pairs
    inner join rules
        on tag_pairs.pair_key = rules.tag_key and {{ fits('tag_pairs.pair_value', 'rules.tag_value') }}
),

fitted as (
    select
        field_name,
        field_value,
        string_agg(policy_row, ',' order by policy_row) as fitting_rules
    from fitting
    group by field_name, field_value
),

final as (
    select
        field_name,
        field_value,
        dense_rank() over (order by field_name, fitting_rules) as value_class,
        min(field_value) over (partition by field_name, fitting_rules) as example_value
    from fitted
)

select * from final
