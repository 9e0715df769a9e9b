-- grain: one row per row of seeds/policy/allocation_policies.csv
select
    pool_id,
    component,
    method,
    overhead_base,
    coalesce(burst_policy, 'blended') as burst_policy,
    cast(coalesce(lender_share, 0) as numeric(38, 9)) as lender_share,
    intensity_metric,
    {{ whole('coalesce(intensity_floor, 0) * 1000') }} as intensity_floor_thousandths,
    {{ whole('coalesce(intensity_min_coverage, 0.5) * 1000') }} as intensity_min_coverage_thousandths,
    idle_ceiling,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('allocation_policies', ['pool_id', 'component']) }} as policy_row,
    {{ key_of([
        'pool_id', 'component', 'method', 'overhead_base', 'burst_policy', number_as_text('lender_share'), 'intensity_metric',
        number_as_text('intensity_floor'), number_as_text('intensity_min_coverage'), number_as_text('idle_ceiling'), 'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('allocation_policies') }}
