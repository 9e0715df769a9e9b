-- grain: one row per part of a commitment's fee and UTC day
-- The parts of an amortized fee are lines of their own: each is placed like the line that it pays for, and belongs to the
-- invoice of the fee. What nobody used is one line of the day, in the pool `commitments`.
{%- set of_the_bill = [
    'source_name', 'provider', 'invoice_id', 'currency', 'charge_category', 'charge_description', 'billing_period_date'
] %}
{%- set of_the_place = [
    'service_name', 'resource_id', 'tags', 'cost_rule', 'rule_component', 'rule_pool_id', 'cost_grain', 'driver', 'has_owner'
] %}

with commitment_parts as (
    select * from {{ ref('int_commitment_parts') }}
),

fees as (
    select * from {{ ref('int_charges_classified') }}
    where is_amortized
),

covered as (
    select * from {{ ref('int_charges_classified') }}
    where charge_category = 'Usage' and commitment_quantity > 0
),

days as (
    select * from {{ ref('int_days') }}
),

used_parts as (
    select
        parts.usage_date,
        {{ dbt.concat([
            'parts.fee_key', "' > '", 'parts.covered_key', "' @ '", as_text(floor_divide('parts.hour_ms', '3600000'))
        ]) }} as charge_key,
        parts.fee_key as commitment_fee_key,
        {{ qualified('fees', of_the_bill) }},
        {{ qualified('covered', of_the_place) }},
        fees.is_final and covered.is_final as is_final,
        parts.start_ms as spread_start_ms,
        parts.end_ms as spread_end_ms,
        cast(0 as numeric(38, 9)) as list_cost,
        cast(0 as numeric(38, 9)) as billed_cost,
        parts.effective_cost,
        cast(0 as numeric(38, 9)) as line_billed_cost
    from commitment_parts as parts
    inner join fees on parts.usage_date = fees.usage_date and parts.fee_key = fees.charge_key
    inner join covered on parts.usage_date = covered.usage_date and parts.covered_key = covered.charge_key
),

unused_days as (
    select
        usage_date,
        fee_key,
        cast(sum(effective_cost) as numeric(38, 9)) as effective_cost
    from commitment_parts
    where covered_key is null
    group by usage_date, fee_key
),

unused_parts as (
    select
        unused_days.usage_date,
        {{ dbt.concat(['unused_days.fee_key', "' > unused'"]) }} as charge_key,
        unused_days.fee_key as commitment_fee_key,
        {{ qualified('fees', of_the_bill) }},
        fees.service_name,
        fees.resource_id,
        fees.tags,
        fees.cost_rule,
        'other' as rule_component,
        'commitments' as rule_pool_id,
        'day' as cost_grain,
        cast(null as {{ dbt.type_string() }}) as driver,
        false as has_owner,
        fees.is_final,
        days.day_start_ms as spread_start_ms,
        days.day_end_ms as spread_end_ms,
        cast(0 as numeric(38, 9)) as list_cost,
        cast(0 as numeric(38, 9)) as billed_cost,
        unused_days.effective_cost,
        cast(0 as numeric(38, 9)) as line_billed_cost
    from unused_days
    inner join fees on unused_days.usage_date = fees.usage_date and unused_days.fee_key = fees.charge_key
    inner join days on unused_days.usage_date = days.usage_date
    where unused_days.effective_cost <> 0
),

final as (
    select * from used_parts
    union all
    select * from unused_parts
)

select * from final
