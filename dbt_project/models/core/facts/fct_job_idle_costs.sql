-- grain: one row per UTC day, pool, currency, idle cause and job: what it pays of idle cost by its use of the day
-- Side by side like fct_job_costs. Idle cost that another rule divides, or a ceiling bounds, is in fct_other_costs.
select
    costs.usage_date,
    costs.pool_id,
    costs.currency,
    costs.idle_cause,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    payers.job_key,
    costs.policy_row,
    costs.gpu_cost,
    costs.cpu_cost,
    costs.memory_cost
from {{ ref('int_job_idle_costs') }} as costs
inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
