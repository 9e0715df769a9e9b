select
    team_id,
    if(is_closed, 'closed', 'draft') as state,
    strftime(period_date, '%Y-%m') as period,
    close_number, invoice_id, invoice_version, billing_mode, team_name, cost_centre, project_id, project_name, component,
    allocation_kind, strftime(corrected_period_date, '%Y-%m') as corrected_period, cause, currency, amount,
    cast(invoiced_amount as decimal(38, 2)) as invoiced_amount, reporting_currency, reporting_rate,
    cast(reporting_amount as decimal(38, 2)) as reporting_amount, expense_account, clearing_account, clearing_cost_centre,
    closed_at, closed_by, override_reason, policy_version, content_hash
from month_lines
order by
    team_id, currency desc, billing_mode, invoice_id, project_id nulls first, component, allocation_kind,
    corrected_period nulls first, cost_centre nulls first
