-- grain: one row per limit and validity
select
    limit_name,
    max_share,
    valid_from,
    valid_to,
    reason
from {{ ref('stg_policy__closing_limits') }}
