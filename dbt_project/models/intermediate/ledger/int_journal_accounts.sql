-- grain: one row per component and validity; `*` is any other component
select
    component,
    expense_account,
    clearing_account,
    clearing_cost_centre,
    valid_from,
    valid_to
from {{ ref('stg_policy__journal_accounts') }}
