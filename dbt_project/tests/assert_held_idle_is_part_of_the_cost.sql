{{ config(meta={"dagster": {"ref": {"name": "rpt_job_receipts"}}}) }}
-- law 6, waste is a part of what a job pays for GPUs: never less than nothing, never more than all of it
select
    usage_date,
    job_key,
    pool_id,
    currency,
    gpu_cost,
    held_idle_cost
from {{ ref('rpt_job_receipts') }}
where
    {{ in_window('usage_date') }}
    and gpu_cost >= 0
    and (held_idle_cost < 0 or held_idle_cost > gpu_cost)
