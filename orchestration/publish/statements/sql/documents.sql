-- A switch of the billing mode in mid-month makes two documents: a part that is only shown and a part that is charged.
with days as (
    select team_id, billing_mode, min(usage_date) as first_date, max(usage_date) as last_date
    from marts.core.fct_team_days
    where usage_date >= $month and usage_date < $next
    group by all
)

select
    month_lines.team_id,
    month_lines.currency,
    month_lines.invoice_id,
    max(month_lines.invoice_version) as invoice_version,
    month_lines.billing_mode,
    string_agg(distinct month_lines.cost_centre, ', ' order by month_lines.cost_centre) as cost_centres,
    any_value(days.first_date) as first_date,
    any_value(days.last_date) as last_date,
    count(*) as line_count,
    sum(month_lines.amount) as amount,
    coalesce(sum(month_lines.invoiced_amount) filter (allocation_kind <> 'true_up'), 0) as own_amount,
    coalesce(sum(month_lines.invoiced_amount) filter (allocation_kind = 'true_up'), 0) as true_up_amount,
    sum(month_lines.invoiced_amount) as invoiced_amount,
    any_value(month_lines.reporting_currency) as reporting_currency,
    any_value(month_lines.reporting_rate) as reporting_rate,
    sum(month_lines.reporting_amount) as reporting_amount
from month_lines
left join days on month_lines.team_id = days.team_id and month_lines.billing_mode = days.billing_mode
group by month_lines.team_id, month_lines.currency, month_lines.invoice_id, month_lines.billing_mode
order by month_lines.team_id, month_lines.currency desc, month_lines.billing_mode, month_lines.invoice_id
