-- grain: one row per row of a policy seed
select
    policy_row,
    seed_name,
    valid_from,
    nullif(valid_to, date '9999-12-31') as valid_to,
    reason,
    row_hash
from {{ ref('int_policy_rows') }}
