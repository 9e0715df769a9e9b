-- The ledger, where there is one: closed months, their corrections, and what the next close would add.
-- Tables that the published database does not have are stood in for by empty ones of these columns.

-- grain: one row per close, team and currency
create temp table closes as
select
    close_number,
    period_date,
    team_id,
    currency,
    max(closed_at) as closed_at,
    max(closed_by) as closed_by,
    max(override_reason) as override_reason,
    max(content_hash) as content_hash,
    count(distinct invoice_id) as invoice_count,
    sum(invoiced_amount) as invoiced_amount,
    sum(invoiced_amount) filter (allocation_kind = 'true_up') as true_up_amount
from closed_lines
group by all;

-- grain: one row per month that carries the correction, month that is corrected, team, cause and currency
create temp table true_ups as
select
    false as is_open, period_date, corrected_period_date, team_id, cause, currency,
    sum(amount) as amount, sum(invoiced_amount) as invoiced_amount, count(*) as line_count
from closed_lines
where allocation_kind = 'true_up'
group by all
union all
select
    true as is_open, period_date, corrected_period_date, team_id, cause, currency,
    sum(amount) as amount, sum(invoiced_amount) as invoiced_amount, count(*) as line_count
from open_lines
where allocation_kind = 'true_up'
group by all;

-- What a month's invoices come to in one currency, corrections of other months left out.
-- grain: one row per month, team and reporting currency
create temp table reporting_months as
select period_date as month_date, team_id, reporting_currency, sum(reporting_amount) as reporting_amount
from (
    select period_date, team_id, reporting_currency, reporting_amount, allocation_kind from closed_lines
    union all
    select period_date, team_id, reporting_currency, reporting_amount, allocation_kind from open_lines
)
where allocation_kind <> 'true_up' and reporting_amount is not null and period_date in (select month_date from days)
group by all;
