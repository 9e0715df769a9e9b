-- grain: one row per part of a job run and UTC day, with its payer and workload class
-- The parts of one job have one payer, partition and class, those of the first part, however their own labels differ. Job
-- runs of a day are numbered in the order in which splits go through payers, so that the steps between need not sort or
-- join by names. Numbers are good for this run alone; `int_job_payers` says whose they are.
{%- set of_first_part = [
    'cluster_id', 'account', 'user_name', 'namespace', 'labels', 'partition_name', 'qos', 'job_name', 'gpu_units',
    'time_limit_ms', 'checkpoint_interval_ms',
] %}
{%- set names_of_payer = ['cluster_id', 'account', 'user_name', 'namespace', 'labels'] %}
{%- set names_of_class = ['cluster_id', 'partition_name', 'qos', 'job_name', 'labels', 'gpu_units', 'time_limit_ms'] %}

with days as (
    select * from {{ ref('int_days') }}
),

payers as (
    select * from {{ ref('int_payers') }}
    where path is null and tags is null
),

classes as (
    select * from {{ ref('int_job_classes') }}
),

jobs_of_several_parts as (
    select
        usage_date,
        job_key,
        count(*) as part_count
    from {{ ref('stg_scheduler__jobs') }}
    group by usage_date, job_key
    having count(*) > 1
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

parts_of_several as (
    select
        jobs.*,
        row_number() over (partition by jobs.usage_date, jobs.job_key order by jobs.start_ms, jobs.part_id) as part_order,
        jobs_of_several_parts.part_count
    from {{ ref('stg_scheduler__jobs') }} as jobs
    inner join jobs_of_several_parts
        on jobs.usage_date = jobs_of_several_parts.usage_date and jobs.job_key = jobs_of_several_parts.job_key
),

parts as (
    select
        {%- for column in of_first_part %}
        jobs.{{ column }} as first_{{ column }},
        {%- endfor %}
        jobs.*,
        1 as part_order,
        1 as part_count
    from {{ ref('stg_scheduler__jobs') }} as jobs
    left join jobs_of_several_parts
        on jobs.usage_date = jobs_of_several_parts.usage_date and jobs.job_key = jobs_of_several_parts.job_key
    where jobs_of_several_parts.job_key is null
    union all
    select
        {%- for column in of_first_part %}
        first_parts.{{ column }} as first_{{ column }},
        {%- endfor %}
        parts_of_several.*
    from parts_of_several
    inner join parts_of_several as first_parts
        on
            parts_of_several.usage_date = first_parts.usage_date
            and parts_of_several.job_key = first_parts.job_key
            and first_parts.part_order = 1
),

charged as (
    select
        parts.*,
        names_of_several.part_id is null as is_only_one_of_its_name,
        greatest(parts.start_ms, days.day_start_ms) as part_start_ms,
        least(parts.end_ms, days.day_end_ms) as part_end_ms,
        coalesce(payers.team_id, 'unattributed') as team_id,
        payers.project_id,
        payers.payer_rule,
        classes.workload_class,
        classes.workload_rule,
        classes.is_class_self_declared
    from parts
    inner join days on parts.usage_date = days.usage_date
    inner join classes
        on
            parts.usage_date = classes.usage_date
            and {{ same_values('parts.first_', 'classes.', names_of_class) }}
    left join names_of_several on {{ equal_on('parts', 'names_of_several', ['usage_date', 'cluster_id', 'part_id']) }}
    left join payers
        on
            parts.usage_date = payers.usage_date
            and {{ same_values('parts.first_', 'payers.', names_of_payer) }}
),

numbered as (
    select
        charged.*,
        row_number() over (
            order by team_id, project_id nulls first, first_user_name nulls first, job_key, usage_date, part_order
        ) as part_number
    from charged
),

final as (
    select
        usage_date,
        part_number - part_order + 1 as job_number,
        part_number,
        part_order,
        part_count,
        cluster_id,
        scheduler,
        job_key,
        job_id,
        part_id,
        is_only_one_of_its_name,
        array_job_id,
        account,
        namespace,
        partition_name,
        qos,
        job_name,
        state,
        exit_code,
        node_names,
        gpu_units,
        cpu_millicores,
        memory_mib,
        bytes_out,
        suspended_ms,
        is_cpu_request_missing,
        is_memory_request_missing,
        is_running,
        submit_at,
        start_at,
        end_at,
        start_ms,
        end_ms,
        part_start_ms,
        part_end_ms,
        team_id,
        project_id,
        first_user_name as payer_user_name,
        first_partition_name as payer_partition_name,
        payer_rule,
        workload_class,
        workload_rule,
        is_class_self_declared,
        first_checkpoint_interval_ms as checkpoint_interval_ms
    from numbered
)

select * from final
