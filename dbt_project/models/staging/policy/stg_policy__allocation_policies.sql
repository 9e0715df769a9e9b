-- grain: one row per row of seeds/policy/allocation_policies.csv
select
    pool_id,
    component,
    method,
    overhead_base,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('allocation_policies', ['pool_id', 'component']) }} as policy_row,
    {{ key_of(['pool_id', 'component', 'method', 'overhead_base', 'valid_from', 'reason']) }} as row_hash
from {{ ref('allocation_policies') }}
