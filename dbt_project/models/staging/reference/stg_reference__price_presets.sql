-- grain: one row per price preset
select
    preset,
    basis,
    {{ whole('gpu_weight * 1000000') }} as gpu_weight_millionths,
    {{ whole('cpu_weight * 1000000') }} as cpu_weight_millionths,
    {{ whole('memory_weight * 1000000') }} as memory_weight_millionths,
    date '1970-01-01' as valid_from,
    date '9999-12-31' as valid_to,
    reason,
    {{ policy_row('price_presets', ['preset'], is_dated=false) }} as policy_row,
    {{ key_of([
        'preset', 'basis', number_as_text('gpu_weight'), number_as_text('cpu_weight'), number_as_text('memory_weight'), 'reason'
    ]) }} as row_hash
from {{ ref('price_presets') }}
