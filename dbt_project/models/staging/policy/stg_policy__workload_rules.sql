-- grain: one row per row of seeds/policy/workload_rules.csv
select
    rule_order,
    cluster_id,
    {{ adapter.quote('partition') }} as partition_name,
    qos,
    job_name,
    label,
    {{ pair_key('label') }} as label_key,
    {{ pair_value('label') }} as label_value,
    {{ whole('min_gpus * 25200') }} as min_gpu_units,
    {{ whole('max_gpus * 25200') }} as max_gpu_units,
    {{ whole('min_hours * 3600000') }} as min_limit_ms,
    {{ whole('max_hours * 3600000') }} as max_limit_ms,
    workload_class,
    coalesce(self_declared, false) as is_self_declared,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('workload_rules', ['rule_order']) }} as policy_row,
    {{ key_of([
        'rule_order', 'cluster_id', adapter.quote('partition'), 'qos', 'job_name', 'label', number_as_text('min_gpus'),
        number_as_text('max_gpus'), number_as_text('min_hours'), number_as_text('max_hours'), 'workload_class',
        'self_declared', 'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('workload_rules') }}
