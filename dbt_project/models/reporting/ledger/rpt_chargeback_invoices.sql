-- grain: one row per invoice: closed month, chargeback team and currency
select
    period_date,
    invoice_id,
    invoice_version,
    team_id,
    team_name,
    currency,
    cast(sum(case when allocation_kind = 'true_up' then 0 else invoiced_amount end) as numeric(38, 9)) as charged_amount,
    cast(sum(case when allocation_kind = 'true_up' then invoiced_amount else 0 end) as numeric(38, 9)) as true_up_amount,
    cast(sum(invoiced_amount) as numeric(38, 9)) as invoiced_amount,
    cast(sum(amount) as numeric(38, 9)) as amount,
    reporting_currency,
    reporting_rate,
    cast(sum(reporting_amount) as numeric(38, 9)) as reporting_amount,
    count(*) as line_count,
    close_number,
    closed_at,
    closed_by,
    content_hash
from {{ ref('fct_invoice_lines') }}
where billing_mode = 'chargeback'
group by
    period_date, invoice_id, invoice_version, team_id, team_name, currency, reporting_currency, reporting_rate, close_number, closed_at,
    closed_by, content_hash
