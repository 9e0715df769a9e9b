-- Per currency, and beside it what everything comes to in the reporting currency.
with sides as (
    select team_id, currency, amount, invoiced_amount, reporting_amount, allocation_kind, 0 as before_amount,
        0 as before_reporting_amount
    from month_lines
    union all
    select team_id, currency, 0, 0, 0, null, invoiced_amount, reporting_amount
    from lines_before
    where team_id in (select team_id from month_lines)
),

sums as (
    select
        team_id,
        currency,
        sum(amount) as amount,
        sum(invoiced_amount) as invoiced_amount,
        coalesce(sum(invoiced_amount) filter (allocation_kind = 'true_up'), 0) as true_up_amount,
        sum(before_amount) as before_amount,
        -- An amount without a rate has none in the reporting currency, and neither has a sum of it.
        if(count(*) = count(reporting_amount), sum(reporting_amount), null) as reporting_amount,
        if(count(*) = count(before_reporting_amount), sum(before_reporting_amount), null) as before_reporting_amount
    from sides
    group by grouping sets ((team_id, currency), (team_id))
)

select
    sums.team_id,
    sums.currency,
    sums.amount,
    sums.invoiced_amount,
    sums.true_up_amount,
    sums.reporting_amount,
    if(known.any_before, sums.before_amount, null) as before_amount,
    if(known.any_before, sums.invoiced_amount - sums.before_amount, null) as change_amount,
    round(100 * cast(sums.invoiced_amount - sums.before_amount as double) / nullif(abs(cast(sums.before_amount as double)), 0), 1)
        as change_percent,
    if(known.any_before, sums.before_reporting_amount, null) as before_reporting_amount,
    if(known.any_before, sums.reporting_amount - sums.before_reporting_amount, null) as change_reporting_amount,
    round(
        100 * cast(sums.reporting_amount - sums.before_reporting_amount as double)
        / nullif(abs(cast(sums.before_reporting_amount as double)), 0), 1
    ) as change_reporting_percent,
    round(cast(sums.invoiced_amount as double) / nullif(spans.day_count, 0), 2) as day_amount,
    if(known.any_before, round(cast(sums.before_amount as double) / spans.day_count_before, 2), null) as before_day_amount
from sums
cross join spans
cross join (select count(*) > 0 as any_before from lines_before) as known
order by sums.team_id, sums.currency desc nulls last
