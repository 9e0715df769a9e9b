-- grain: one row per commitment fee, hour and bill line that it covers there (no line: what nobody used)
-- For bills that do not say what covered use costs. A fee is spread by time over its term, and each hour's part goes to the
-- lines that the commitment covers in it by covered / purchased quantity; the rest is what nobody used. Fees of one commitment
-- (paid upfront and by the month, or bought twice) share its quantity.
with days as (
    select * from {{ ref('int_days') }}
),

fees as (
    select
        charges.usage_date,
        charges.charge_key as fee_key,
        coalesce(charges.provider, '') as provider,
        charges.currency,
        charges.commitment_id,
        charges.billed_cost,
        charges.commitment_quantity,
        charges.commitment_start_ms,
        charges.commitment_end_ms,
        greatest(days.day_start_ms, charges.commitment_start_ms) as day_part_start_ms,
        least(days.day_end_ms, charges.commitment_end_ms) as day_part_end_ms
    from {{ ref('int_charges_classified') }} as charges
    inner join days on charges.usage_date = days.usage_date
    where
        charges.is_amortized
        and days.day_start_ms < charges.commitment_end_ms
        and days.day_end_ms > charges.commitment_start_ms
),

fee_hours as (
    select
        fees.*,
        hour_ms,
        greatest(hour_ms, fees.commitment_start_ms) as start_ms,
        least(hour_ms + 3600000, fees.commitment_end_ms) as end_ms
    from fees
    {{ cross_join_series(hour_start_ms('fees.day_part_start_ms'), 'fees.day_part_end_ms', 3600000, 'hour_ms') }}
),

fee_parts as (
    select
        usage_date,
        fee_key,
        provider,
        currency,
        commitment_id,
        hour_ms,
        {{ share('billed_cost', '(end_ms - commitment_start_ms)', '(commitment_end_ms - commitment_start_ms)') }}
        - {{ share('billed_cost', '(start_ms - commitment_start_ms)', '(commitment_end_ms - commitment_start_ms)') }} as cost,
        coalesce(
            {{ share('commitment_quantity', '(end_ms - start_ms)', '(commitment_end_ms - commitment_start_ms)') }}, 0
        ) as purchased_quantity
    from fee_hours
),

commitments as (
    select distinct
        usage_date,
        provider,
        currency,
        commitment_id
    from fees
),

covered_lines as (
    select
        charges.usage_date,
        charges.charge_key as covered_key,
        commitments.provider,
        charges.currency,
        charges.commitment_id,
        charges.commitment_quantity,
        charges.spread_start_ms,
        charges.spread_end_ms,
        greatest(days.day_start_ms, charges.spread_start_ms) as day_part_start_ms,
        least(days.day_end_ms, charges.spread_end_ms) as day_part_end_ms
    from {{ ref('int_charges_classified') }} as charges
    inner join days on charges.usage_date = days.usage_date
    inner join commitments
        on
            {{ equal_on('charges', 'commitments', ['usage_date', 'currency', 'commitment_id']) }}
            and coalesce(charges.provider, '') = commitments.provider
    where charges.charge_category = 'Usage' and charges.commitment_quantity > 0
),

covered_hours as (
    select
        covered_lines.*,
        hour_ms,
        greatest(hour_ms, covered_lines.spread_start_ms) as start_ms,
        least(hour_ms + 3600000, covered_lines.spread_end_ms) as end_ms
    from covered_lines
    {{ cross_join_series(hour_start_ms('covered_lines.day_part_start_ms'), 'covered_lines.day_part_end_ms', 3600000, 'hour_ms') }}
),

covered as (
    select
        usage_date,
        provider,
        currency,
        commitment_id,
        hour_ms,
        covered_key,
        start_ms,
        end_ms,
        {{ share('commitment_quantity', '(end_ms - start_ms)', '(spread_end_ms - spread_start_ms)') }} as covered_quantity
    from covered_hours
),

purchased_sums as (
    select
        usage_date,
        provider,
        currency,
        commitment_id,
        hour_ms,
        cast(sum(purchased_quantity) as numeric(38, 9)) as purchased_quantity
    from fee_parts
    group by usage_date, provider, currency, commitment_id, hour_ms
),

covered_sums as (
    select
        usage_date,
        provider,
        currency,
        commitment_id,
        hour_ms,
        cast(sum(covered_quantity) as numeric(38, 9)) as covered_quantity
    from covered
    group by usage_date, provider, currency, commitment_id, hour_ms
),

weighted as (
    select
        fee_parts.usage_date,
        fee_parts.fee_key,
        fee_parts.hour_ms,
        covered.covered_key,
        fee_parts.cost,
        covered.start_ms,
        covered.end_ms,
        {{ nano_units('covered.covered_quantity') }} as weight
    from fee_parts
    inner join covered
        on {{ equal_on('fee_parts', 'covered', ['usage_date', 'provider', 'currency', 'commitment_id', 'hour_ms']) }}
    union all
    select
        fee_parts.usage_date,
        fee_parts.fee_key,
        fee_parts.hour_ms,
        cast(null as {{ dbt.type_string() }}) as covered_key,
        fee_parts.cost,
        fee_parts.hour_ms as start_ms,
        fee_parts.hour_ms as end_ms,
        case
            -- How much was purchased is not known, or only returns are left of it, and nobody used any of it.
            when purchased_sums.purchased_quantity <= 0 and coalesce(covered_sums.covered_quantity, 0) = 0 then {{ as_weight('1') }}
            else {{ nano_units('greatest(purchased_sums.purchased_quantity - coalesce(covered_sums.covered_quantity, 0), 0)') }}
        end as weight
    from fee_parts
    inner join purchased_sums
        on {{ equal_on('fee_parts', 'purchased_sums', ['usage_date', 'provider', 'currency', 'commitment_id', 'hour_ms']) }}
    left join covered_sums
        on {{ equal_on('fee_parts', 'covered_sums', ['usage_date', 'provider', 'currency', 'commitment_id', 'hour_ms']) }}
),

parts as (
    {{ split('weighted', ['cost'], 'weight', by=['usage_date', 'fee_key', 'hour_ms'], order_by=['covered_key']) }}
),

final as (
    select
        usage_date,
        fee_key,
        hour_ms,
        covered_key,
        start_ms,
        end_ms,
        cost_part as effective_cost
    from parts
)

select * from final
