-- grain: one row per row of seeds/policy/overhead_shares.csv
select
    pool_id,
    team_id,
    share,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('overhead_shares', ['pool_id', 'team_id']) }} as policy_row,
    {{ key_of(['pool_id', 'team_id', number_as_text('share'), 'valid_from', 'reason']) }} as row_hash
from {{ ref('overhead_shares') }}
