-- grain: one row per account of a scheduler and UTC day
select
    date as usage_date,
    cluster_id,
    account,
    parent_account
from {{ landed('account_tree') }}
where {{ in_window('date') }}
