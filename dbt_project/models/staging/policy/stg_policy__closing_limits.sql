-- grain: one row per row of seeds/policy/closing_limits.csv
select
    limit_name,
    max_share,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason
from {{ ref('closing_limits') }}
