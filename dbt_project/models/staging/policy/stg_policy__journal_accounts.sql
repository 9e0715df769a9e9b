-- grain: one row per row of seeds/policy/journal_accounts.csv
select
    component,
    expense_account,
    clearing_account,
    clearing_cost_centre,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason
from {{ ref('journal_accounts') }}
