-- grain: one row per provider, invoice and currency
-- Ties the books to the invoice: billed = allocatable + paid ahead - released + outside the built days, and
-- allocated = allocatable. What lies outside is computed from the lines and the calendar, not as the remainder. While
-- some days of a restated bill have not been run again, their part is shown by itself.
with billed as (
    select * from {{ ref('fct_billed_costs') }}
),

allocations as (
    select * from {{ ref('fct_cost_allocations') }}
),

built_days as (
    select usage_date from {{ ref('fct_days') }}
),

invoice_totals as (
    select * from {{ ref('dim_invoice_totals') }}
),

lines as (
    select
        charge_key,
        min(provider) as provider,
        min(invoice_id) as invoice_id,
        min(currency) as currency,
        min(billing_period_date) as billing_period_date,
        min(line_billed_cost) as line_billed_cost,
        max(case when commitment_fee_key is null then 1 else 0 end) as is_on_the_bill,
        min({{ milliseconds('spread_start_at') }}) as start_ms,
        min({{ milliseconds('spread_end_at') }}) as end_ms,
        cast(sum(billed_cost) as numeric(38, 9)) as billed_cost,
        cast(sum(allocatable_cost) as numeric(38, 9)) as allocatable_cost,
        cast(sum(greatest(billed_cost - allocatable_cost, 0)) as numeric(38, 9)) as paid_ahead_cost,
        cast(sum(greatest(allocatable_cost - billed_cost, 0)) as numeric(38, 9)) as released_cost,
        min(cost_status) as first_status,
        max(cost_status) as last_status
    from billed
    group by charge_key
),

booked as (
    select distinct
        charge_key,
        usage_date
    from billed
),

line_days as (
    select
        lines.charge_key,
        day_ms
    from lines
    {{ cross_join_series(floor_divide('lines.start_ms', '86400000') ~ ' * 86400000', 'lines.end_ms', 86400000, 'day_ms') }}
),

-- The parts of each line on days that do not hold it: days that are not built, and days that were built from another
-- version of the bill and have to be run again.
missing_parts as (
    select
        lines.charge_key,
        built_days.usage_date is not null as is_built,
        {{ share(
            'lines.line_billed_cost',
            '(least(line_days.day_ms + 86400000, lines.end_ms) - lines.start_ms)',
            '(lines.end_ms - lines.start_ms)'
        ) }}
        - {{ share(
            'lines.line_billed_cost',
            '(greatest(line_days.day_ms, lines.start_ms) - lines.start_ms)',
            '(lines.end_ms - lines.start_ms)'
        ) }} as billed_cost
    from line_days
    inner join lines on line_days.charge_key = lines.charge_key
    left join built_days on {{ date_of('line_days.day_ms') }} = built_days.usage_date
    left join booked
        on line_days.charge_key = booked.charge_key and {{ date_of('line_days.day_ms') }} = booked.usage_date
    where booked.charge_key is null
),

missing as (
    select
        charge_key,
        cast(sum(case when is_built then 0 else billed_cost end) as numeric(38, 9)) as outside_cost,
        cast(sum(case when is_built then billed_cost else 0 end) as numeric(38, 9)) as restated_cost
    from missing_parts
    group by charge_key
),

invoices as (
    select
        lines.provider,
        lines.invoice_id,
        lines.currency,
        min(lines.billing_period_date) as billing_period_date,
        cast(sum(lines.is_on_the_bill) as int64) as line_count,
        cast(sum(lines.line_billed_cost) as numeric(38, 9)) as billed_cost,
        cast(sum(lines.allocatable_cost) as numeric(38, 9)) as allocatable_cost,
        cast(sum(lines.paid_ahead_cost) as numeric(38, 9)) as paid_ahead_cost,
        cast(sum(lines.released_cost) as numeric(38, 9)) as released_cost,
        cast(sum(coalesce(missing.outside_cost, 0)) as numeric(38, 9)) as outside_cost,
        cast(sum(coalesce(missing.restated_cost, 0)) as numeric(38, 9)) as restated_cost,
        case when min(lines.first_status) = 'final' and max(lines.last_status) = 'final' then 'final' else 'provisional' end as cost_status
    from lines
    left join missing on lines.charge_key = missing.charge_key
    group by lines.provider, lines.invoice_id, lines.currency
),

-- What the invoice asked for before its newest delivery. A delivery may be several files, and an invoice may come from several
-- sources, or in streams (actual and amortized cost) of which each is delivered anew by itself.
delivered as (
    select
        source_name,
        stream,
        provider,
        invoice_id,
        currency,
        delivered_at,
        max(case when replaces = 'billing_period' then 1 else 0 end) as is_whole,
        cast(sum(billed_cost) as numeric(38, 9)) as billed_cost
    from {{ ref('raw_deliveries') }}
    where table_name = 'charges' and invoice_id is not null
    group by source_name, stream, provider, invoice_id, currency, delivered_at
),

newest_of_streams as (
    select *
    from delivered
    qualify row_number() over (
        partition by source_name, stream, provider, invoice_id, currency order by delivered_at desc
    ) = 1
),

delivery_counts as (
    select
        provider,
        invoice_id,
        currency,
        count(distinct delivered_at) as delivery_count
    from delivered
    group by provider, invoice_id, currency
),

newest as (
    select
        provider,
        invoice_id,
        currency,
        max(delivered_at) as delivered_at,
        min(is_whole) as is_whole,
        cast(sum(billed_cost) as numeric(38, 9)) as billed_cost
    from newest_of_streams
    group by provider, invoice_id, currency
),

previous_of_streams as (
    select delivered.*
    from delivered
    inner join newest on {{ equal_on('delivered', 'newest', ['provider', 'invoice_id', 'currency']) }}
    where delivered.is_whole = 1 and delivered.delivered_at < newest.delivered_at
    qualify row_number() over (
        partition by delivered.source_name, delivered.stream, delivered.provider, delivered.invoice_id, delivered.currency
        order by delivered.delivered_at desc
    ) = 1
),

previous as (
    select
        provider,
        invoice_id,
        currency,
        cast(sum(billed_cost) as numeric(38, 9)) as billed_cost
    from previous_of_streams
    group by provider, invoice_id, currency
),

-- Allocations are not kept per invoice; each day x pool x component x currency must tie, and their gaps are shown here.
gaps as (
    select
        costs.currency,
        cast(sum(costs.allocatable_cost) as numeric(38, 9)) as allocatable_cost,
        cast(sum(costs.allocated_cost) as numeric(38, 9)) as allocated_cost
    from (
        select
            currency,
            allocatable_cost,
            cast(0 as numeric(38, 9)) as allocated_cost
        from billed
        union all
        select
            currency,
            cast(0 as numeric(38, 9)) as allocatable_cost,
            amount as allocated_cost
        from allocations
    ) as costs
    group by costs.currency
)

select
    invoices.provider,
    invoices.invoice_id,
    invoices.currency,
    invoices.billing_period_date,
    invoices.line_count,
    invoices.billed_cost,
    invoices.allocatable_cost,
    invoices.paid_ahead_cost,
    invoices.released_cost,
    invoices.outside_cost,
    invoices.restated_cost,
    cast(
        invoices.billed_cost - invoices.allocatable_cost - invoices.paid_ahead_cost + invoices.released_cost
        - invoices.outside_cost - invoices.restated_cost as numeric(38, 9)
    ) as billed_difference,
    coalesce(delivery_counts.delivery_count, 0) as delivery_count,
    newest.delivered_at,
    previous.billed_cost as previous_billed_cost,
    case when newest.is_whole = 1 then newest.billed_cost else invoices.billed_cost end as delivered_billed_cost,
    coalesce(
        invoice_totals.invoice_total,
        case when newest.is_whole = 1 then newest.billed_cost else invoices.billed_cost end
    ) as invoice_total,
    -- An invoice on paper is in cents; a delivery's own total has to be there to the last decimal.
    case
        when invoice_totals.invoice_total is not null
            then cast(invoice_totals.invoice_total - round(invoices.billed_cost, 2) as numeric(38, 9))
        when newest.is_whole = 1 then cast(newest.billed_cost - invoices.billed_cost as numeric(38, 9))
        else cast(0 as numeric(38, 9))
    end as invoice_difference,
    gaps.allocatable_cost as currency_allocatable_cost,
    gaps.allocated_cost as currency_allocated_cost,
    cast(gaps.allocatable_cost - gaps.allocated_cost as numeric(38, 9)) as allocated_difference,
    invoices.cost_status
from invoices
inner join gaps on invoices.currency = gaps.currency
left join newest on {{ equal_on('invoices', 'newest', ['provider', 'invoice_id', 'currency']) }}
left join previous on {{ equal_on('invoices', 'previous', ['provider', 'invoice_id', 'currency']) }}
left join invoice_totals on {{ equal_on('invoices', 'invoice_totals', ['provider', 'invoice_id', 'currency']) }}
left join delivery_counts on {{ equal_on('invoices', 'delivery_counts', ['provider', 'invoice_id', 'currency']) }}
