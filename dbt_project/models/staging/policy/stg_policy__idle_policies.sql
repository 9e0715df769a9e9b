-- grain: one row per row of seeds/policy/idle_policies.csv
select
    pool_id,
    idle_cause,
    policy,
    coalesce(idle_window, 'day') as idle_window,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('idle_policies', ['pool_id', 'idle_cause']) }} as policy_row,
    {{ key_of(['pool_id', 'idle_cause', 'policy', 'idle_window', 'valid_from', 'reason']) }} as row_hash
from {{ ref('idle_policies') }}
