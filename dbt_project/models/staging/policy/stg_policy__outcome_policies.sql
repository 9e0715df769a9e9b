-- grain: one row per row of seeds/policy/outcome_policies.csv
select
    state,
    workload_class,
    paid_by,
    {{ whole('checkpoint_minutes * 60000') }} as checkpoint_ms,
    {{ whole('max_lost_minutes * 60000') }} as max_lost_ms,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('outcome_policies', ['state', 'workload_class']) }} as policy_row,
    {{ key_of([
        'state', 'workload_class', 'paid_by', number_as_text('checkpoint_minutes'),
        number_as_text('max_lost_minutes'), 'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('outcome_policies') }}
