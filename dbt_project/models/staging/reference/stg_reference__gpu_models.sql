-- grain: one row per GPU model
select
    gpu_model,
    vendor,
    memory_gib,
    mig_slices,
    tdp_watts
from {{ ref('gpu_models') }}
