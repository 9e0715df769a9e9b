-- grain: one row per UTC day and pool, as the policy of that day says
select
    usage_date,
    pool_id,
    pool_name,
    pool_kind,
    cluster_id,
    gpu_model,
    purchase_class,
    owner_team_id
from {{ ref('int_pool_days') }}
