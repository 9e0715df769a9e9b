-- grain: one row per UTC day of the window, account of a scheduler and account above it
with recursive accounts as (
    select
        usage_date,
        cluster_id,
        account,
        parent_account
    from {{ ref('stg_scheduler__accounts') }}
    where parent_account is not null
),

ancestors as (
    select
        usage_date,
        cluster_id,
        account,
        parent_account as ancestor_account,
        1 as steps
    from accounts
    union all
    select
        ancestors.usage_date,
        ancestors.cluster_id,
        ancestors.account,
        accounts.parent_account as ancestor_account,
        ancestors.steps + 1 as steps
    from ancestors
    inner join accounts
        on
            ancestors.usage_date = accounts.usage_date
            and ancestors.cluster_id = accounts.cluster_id
            and ancestors.ancestor_account = accounts.account
    -- A tree is not deeper than this; a chain of damaged records that comes back to its beginning must end.
    where ancestors.steps < 20 and accounts.parent_account <> ancestors.account
)

select
    usage_date,
    cluster_id,
    account,
    ancestor_account,
    steps
from ancestors
