-- grain: one row per delivered file, invoice, billing period and currency
-- Files that came at the same time are one delivery. Of the deliveries of a period and stream, the newest that brings the billing period
-- as a whole replaces the older ones; windows and additions that came after it stand beside it.
with deliveries as (
    select * from {{ ref('stg_landing__deliveries') }}
),

newest_wholes as (
    select
        source_name,
        table_name,
        stream,
        period_start_date,
        max(delivered_at) as replaced_until_at
    from deliveries
    where replaces = 'billing_period'
    group by source_name, table_name, stream, period_start_date
),

final as (
    select
        deliveries.*,
        coalesce(deliveries.delivered_at < newest_wholes.replaced_until_at and deliveries.replaces <> 'nothing', false) as is_replaced,
        dense_rank() over (
            partition by deliveries.source_name, deliveries.table_name, deliveries.stream, deliveries.period_start_date
            order by deliveries.delivered_at
        ) as version_number
    from deliveries
    left join newest_wholes
        on {{ equal_on('deliveries', 'newest_wholes', ['source_name', 'table_name', 'stream', 'period_start_date']) }}
)

select * from final
