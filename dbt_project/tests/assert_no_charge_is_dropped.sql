{{ config(meta={"dagster": {"ref": {"name": "fct_billed_costs"}}}) }}
-- law 2, nothing dropped: a bill line all of whose days are landed in the window is in the books with all its money, on
-- whatever pools and components; of use that reaches beyond the window, each landed day is booked
-- (a day that was built without a line that covers it shows in assert_books_tie_to_invoices)
with landed as (
    select
        charges.*,
        charge_category = 'Usage' as is_usage
    from {{ ref('stg_billing__charges') }} as charges
),

landed_lines as (
    select
        charge_key,
        is_usage,
        count(*) as landed_days,
        min(list_cost) as list_cost,
        min(billed_cost) as billed_cost,
        min(effective_cost) as effective_cost,
        is_amortized,
        min(
            case
                when is_usage then charge_start_ms
                when is_amortized then least(charge_start_ms, billing_period_start_ms, commitment_start_ms)
                else least(charge_start_ms, billing_period_start_ms)
            end
        ) as start_ms,
        max(
            case
                when is_usage then charge_end_ms
                when is_amortized then greatest(charge_end_ms, billing_period_end_ms, commitment_end_ms)
                else greatest(charge_end_ms, billing_period_end_ms)
            end
        ) as end_ms
    from landed
    group by charge_key, is_usage, is_amortized
),

booked as (
    select
        line_key as charge_key,
        count(distinct usage_date) as booked_days,
        sum(list_cost) as list_cost,
        sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost
    from (
        select
            *,
            -- The parts of an amortized fee are lines of their own; together they are the fee.
            coalesce(commitment_fee_key, charge_key) as line_key
        from {{ ref('fct_billed_costs') }}
        where {{ in_window('usage_date') }}
    ) as costs
    group by line_key
),

compared as (
    select
        landed_lines.charge_key,
        landed_lines.is_usage,
        landed_lines.landed_days,
        coalesce(booked.booked_days, 0) as booked_days,
        landed_lines.billed_cost as landed_billed_cost,
        coalesce(booked.billed_cost, 0) as booked_billed_cost,
        landed_lines.landed_days > {{ floor_divide('greatest(landed_lines.end_ms - 1, landed_lines.start_ms)', '86400000') }}
        - {{ floor_divide('landed_lines.start_ms', '86400000') }} as is_landed_whole,
        coalesce(booked.list_cost, 0) = landed_lines.list_cost
        and coalesce(booked.billed_cost, 0) = landed_lines.billed_cost
        and coalesce(booked.effective_cost, 0) = landed_lines.effective_cost as is_booked_whole
    from landed_lines
    left join booked on landed_lines.charge_key = booked.charge_key
)

select
    charge_key,
    landed_days,
    booked_days,
    landed_billed_cost,
    booked_billed_cost
from compared
where (is_landed_whole and not is_booked_whole) or (is_usage and landed_days <> booked_days)
