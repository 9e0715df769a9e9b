-- grain: one row per row of seeds/policy/adjustments.csv
select
    adjustment_id,
    adjustment_kind,
    value,
    currency,
    team_id,
    project_id,
    workload_class,
    pool_id,
    component,
    funded_by,
    approved_by,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('adjustments', ['adjustment_id']) }} as policy_row,
    -- An amount is spread over its days: ending it on another day changes what each of them gets.
    {{ key_of([
        'adjustment_id', 'adjustment_kind', number_as_text('value'), 'currency', 'team_id', 'project_id', 'workload_class',
        'pool_id', 'component', 'funded_by', 'approved_by', 'valid_from', 'reason',
        "case when adjustment_kind = 'amount' then valid_to end"
    ]) }} as row_hash
from {{ ref('adjustments') }}
