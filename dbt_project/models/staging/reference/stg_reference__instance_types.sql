-- grain: one row per row of seeds/reference/instance_types.csv
select
    instance_type,
    provider,
    gpu_model,
    gpus,
    cores,
    memory_gib,
    gpu_price_weight,
    cpu_price_weight,
    memory_price_weight,
    price_preset,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('instance_types', ['instance_type']) }} as policy_row,
    {{ key_of([
        'instance_type', 'provider', 'gpu_model', 'gpus', 'cores', 'memory_gib', 'gpu_price_weight', 'cpu_price_weight',
        'memory_price_weight', 'price_preset', 'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('instance_types') }}
