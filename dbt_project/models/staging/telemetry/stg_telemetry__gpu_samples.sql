-- grain: one row per sample of a GPU (or MIG instance)
-- Gauges become integers, so that sums are the same in any order. Blanks are no data (2^31 - 16 and above for gauges, 2^47
-- and above for the counter), and neither is what a MIG instance reports of its whole device (a constant zero
-- utilization, the power of all instances together).
-- Stretch by stretch, for who adds them up so.
{% for days in window_stretches() %}
select
    date as usage_date,
    cluster_id,
    node_name,
    gpu_index,
    part_id,
    {{ microseconds('sampled_at') }} as sampled_us,
    interval_ms,
    case
        when gpu_instance is null and util_percent >= 0 and util_percent <= 100
            then {{ whole('util_percent * 1000') }}
    end as busy_millipercent,
    case
        when gpu_instance is null and power_watts >= 0 and power_watts < 2147483632
            then {{ whole('power_watts * 1000') }}
    end as power_milliwatts,
    case
        when gpu_instance is null and energy_counter_mj >= 0 and energy_counter_mj < 140737488355328
            then {{ whole('energy_counter_mj') }}
    end as energy_counter_mj,
    case when sm_active >= 0 and sm_active <= 1 then {{ whole('sm_active * 100000') }} end as sm_millipercent,
    case when tensor_active >= 0 and tensor_active <= 1 then {{ whole('tensor_active * 100000') }} end as tensor_millipercent
from {{ landed('gpu_samples', days) }}
where {{ in_days('date', days) }}
{% if not loop.last %}
union all
{% endif %}
{% endfor %}
