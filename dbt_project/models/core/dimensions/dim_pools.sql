-- grain: one row per pool
select
    pool_id,
    pool_name,
    pool_kind,
    cluster_id,
    gpu_model,
    purchase_class,
    owner_team_id
from {{ ref('int_pools') }}
