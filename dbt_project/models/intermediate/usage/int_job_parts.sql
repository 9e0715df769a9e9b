-- grain: one row per part of a job run and UTC day: whose it is, what it holds, and from when to when
-- Job runs of a day are numbered in the order in which splits go through payers, so that the steps between need not sort or
-- join by names. Numbers are good for this run alone; `int_job_payers` says whose they are. What else the scheduler said of a
-- part (int_described_parts) is not sorted and written with it.
with parts as (
    select * from {{ ref('int_described_parts') }}
),

-- A requeued job runs again under its old name, and samples name it without saying which run they mean.
names_of_several as (
    select
        usage_date,
        cluster_id,
        part_id
    from {{ ref('stg_scheduler__jobs') }}
    group by usage_date, cluster_id, part_id
    having count(*) > 1
),

numbered as (
    select
        parts.usage_date,
        parts.part_order,
        parts.part_count,
        parts.cluster_id,
        parts.job_key,
        parts.part_id,
        parts.partition_name,
        parts.node_names,
        parts.gpu_units,
        parts.cpu_millicores,
        parts.memory_mib,
        parts.bytes_out,
        parts.suspended_ms,
        parts.end_ms - parts.start_ms as run_ms,
        parts.part_start_ms,
        parts.part_end_ms,
        parts.team_id,
        parts.project_id,
        parts.payer_user_name,
        parts.workload_class,
        parts.workload_rule,
        parts.is_class_self_declared,
        names_of_several.part_id is null as is_only_one_of_its_name,
        row_number() over (
            order by
                parts.team_id,
                parts.project_id nulls first,
                parts.payer_user_name nulls first,
                parts.job_key,
                parts.usage_date,
                parts.part_order
        ) as part_number
    from parts
    left join names_of_several on {{ equal_on('parts', 'names_of_several', ['usage_date', 'cluster_id', 'part_id']) }}
)

select
    part_number - part_order + 1 as job_number,
    numbered.*
from numbered
