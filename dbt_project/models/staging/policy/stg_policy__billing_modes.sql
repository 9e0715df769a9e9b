-- grain: one row per row of seeds/policy/billing_modes.csv
select
    team_id,
    billing_mode,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('billing_modes', ['team_id']) }} as policy_row,
    {{ key_of(['team_id', 'billing_mode', 'valid_from', 'reason']) }} as row_hash
from {{ ref('billing_modes') }}
