-- grain: one row per job run, node, pool and hour
select
    usage_hours.usage_date,
    {{ timestamp_of('hour_ms') }} as hour_at,
    payers.job_key,
    usage_hours.cluster_id,
    node_name,
    pool_id,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    {{ quotient('held_ms', '1000') }} as held_seconds,
    {{ quotient('present_ms', '1000') }} as present_seconds,
    {{ quotient('gpu_held', '25200000') }} as gpu_seconds,
    {{ quotient('cpu_held', '1000000') }} as cpu_core_seconds,
    {{ quotient('memory_held', '1024000') }} as memory_gib_seconds,
    payers.workload_class,
    {{ quotient('class_weight', '1000') }} as class_weight,
    cast(gpu_weight as numeric(38, 9)) as gpu_weight,
    cast(cpu_weight as numeric(38, 9)) as cpu_weight,
    cast(memory_weight as numeric(38, 9)) as memory_weight,
    cast(energy_weight as numeric(38, 9)) as energy_weight,
    {{ quotient('busy_millipercent_ms', 'busy_sampled_ms * 100000') }} as busy_share,
    case
        when gpu_held > 0
            then least({{ quotient('coalesce(busy_sampled_ms, 0) * 25200', 'gpu_held') }}, cast(1 as numeric(38, 9)))
    end as telemetry_coverage_share,
    case when is_energy_measured then {{ quotient('energy', '3600000000000') }} end as energy_kwh
from {{ ref('int_job_usage_hours') }} as usage_hours
inner join {{ ref('int_job_payers') }} as payers on usage_hours.job_number = payers.job_number
