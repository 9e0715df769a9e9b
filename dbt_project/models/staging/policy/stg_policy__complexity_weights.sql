-- grain: one row per row of seeds/policy/complexity_weights.csv
select
    workload_class,
    gpu_model,
    {{ whole('weight * 1000') }} as weight_thousandths,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('complexity_weights', ['workload_class', 'gpu_model']) }} as policy_row,
    {{ key_of(['workload_class', 'gpu_model', number_as_text('weight'), 'valid_from', 'reason']) }} as row_hash
from {{ ref('complexity_weights') }}
