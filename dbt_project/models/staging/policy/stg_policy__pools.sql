-- grain: one row per row of seeds/policy/pools.csv
select
    pool_id,
    pool_name,
    pool_kind,
    cluster_id,
    {{ adapter.quote('partition') }} as partition_name,
    resource,
    gpu_model,
    purchase_class,
    owner_team_id,
    default_instance_type,
    coalesce(min_cores_per_gpu, 1) as min_cores_per_gpu,
    coalesce(min_gib_per_gpu, 1) as min_gib_per_gpu,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('pools', ['pool_id']) }} as policy_row,
    {{ key_of([
        'pool_id', 'pool_name', 'pool_kind', 'cluster_id', adapter.quote('partition'), 'resource', 'gpu_model',
        'purchase_class', 'owner_team_id', 'default_instance_type', 'min_cores_per_gpu', 'min_gib_per_gpu',
        'valid_from', 'reason'
    ]) }} as row_hash
from {{ ref('pools') }}
