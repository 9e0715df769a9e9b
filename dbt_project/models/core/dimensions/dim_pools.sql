-- grain: one row per pool, as the newest built day knows it
select
    pool_id,
    pool_name,
    pool_kind,
    cluster_id,
    gpu_model,
    purchase_class,
    owner_team_id
from {{ ref('fct_pool_days') }}
qualify row_number() over (partition by pool_id order by usage_date desc) = 1
