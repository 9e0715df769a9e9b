-- The month's total, the one before, and what the open month may come to.

-- grain: one row per scope, currency and loaded day; a day without cost is a zero, which a mean has to see
create temp table scoped_days as
with costs as (
    select cast(null as varchar) as scope, usage_date, currency, total_cost from team_days
    union all
    select team_id as scope, usage_date, currency, total_cost from team_days
),

scopes as (select distinct scope, currency from costs)

select
    scopes.scope,
    scopes.currency,
    days.usage_date,
    days.month_date,
    coalesce(sum(costs.total_cost), 0) as total_cost
from scopes
cross join days
left join costs
    on scopes.scope is not distinct from costs.scope
    and scopes.currency = costs.currency
    and days.usage_date = costs.usage_date
group by all;

-- The forecast: each day of the open month that is not loaded costs what its weekday cost on average over the last four
-- weeks of loaded days, or, where that weekday is missing, the average of all of them. Whole cents: it is an estimate.
-- grain: one row per scope and currency, for the newest month only, and only while days of it are missing
create temp table forecasts as
with newest as (select max(month_date) as month_date, max(usage_date) as usage_date from days),

missing as (
    select cast(series.usage_date as date) as usage_date
    from newest
    cross join generate_series(newest.month_date, last_day(newest.month_date), interval 1 day) as series (usage_date)
    where cast(series.usage_date as date) not in (select usage_date from days)
),

history as (
    select scope, currency, usage_date, cast(round(total_cost * 100, 0) as hugeint) as cents
    from scoped_days
    where usage_date > (select usage_date from newest) - 28
),

by_weekday as (
    select scope, currency, isodow(usage_date) as weekday, sum(cents) // count(*) as cents
    from history
    group by all
),

by_day as (select scope, currency, sum(cents) // count(*) as cents from history group by all),

so_far as (
    select scope, currency, cast(round(sum(total_cost) * 100, 0) as hugeint) as cents
    from scoped_days
    where month_date = (select month_date from newest)
    group by all
)

select
    so_far.scope,
    so_far.currency,
    (select month_date from newest) as month_date,
    -- Multiplied, not divided: DuckDB divides decimals as floating point numbers.
    cast(so_far.cents + sum(coalesce(by_weekday.cents, by_day.cents)) as decimal(36, 0)) * 0.01 as forecast_cost
from so_far
cross join missing
inner join by_day on so_far.scope is not distinct from by_day.scope and so_far.currency = by_day.currency
left join by_weekday
    on so_far.scope is not distinct from by_weekday.scope
    and so_far.currency = by_weekday.currency
    and isodow(missing.usage_date) = by_weekday.weekday
group by so_far.scope, so_far.currency, so_far.cents;

-- grain: one row per scope, month and currency
create temp table months as
with months as (
    select scope, currency, month_date, sum(total_cost) as total_cost, count(*) as day_count
    from scoped_days
    group by all
),

-- A month that has only begun is compared to the same days of the one before.
same_days as (
    select today.scope, today.currency, today.month_date, sum(before.total_cost) as total_cost
    from scoped_days as today
    inner join scoped_days as before
        on today.scope is not distinct from before.scope
        and today.currency = before.currency
        and before.month_date = today.month_date - interval 1 month
        and day(before.usage_date) = day(today.usage_date)
    group by all
)

select
    months.scope,
    months.month_date,
    months.currency,
    months.day_count,
    day(last_day(months.month_date)) as days_in_month,
    months.total_cost,
    previous.total_cost as previous_cost,
    same_days.total_cost as same_days_cost,
    -- A percentage is no money; a change from nothing has none.
    cast(100 * (months.total_cost - same_days.total_cost) as double) / nullif(abs(same_days.total_cost), 0) as change_percent,
    forecasts.forecast_cost
from months
left join months as previous
    on months.scope is not distinct from previous.scope
    and months.currency = previous.currency
    and previous.month_date = months.month_date - interval 1 month
left join same_days
    on months.scope is not distinct from same_days.scope
    and months.currency = same_days.currency
    and months.month_date = same_days.month_date
left join forecasts
    on months.scope is not distinct from forecasts.scope
    and months.currency = forecasts.currency
    and months.month_date = forecasts.month_date;
