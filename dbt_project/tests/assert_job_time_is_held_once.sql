{{ config(meta={"dagster": {"ref": {"name": "fct_job_usage_hourly"}}}) }}
-- law 2, nothing dropped: every second of a job inside the window is held on each of its nodes, in one pool, by one
-- payer, with all its GPUs and memory
with jobs as (
    select
        jobs.*,
        greatest(jobs.start_ms, {{ day_start_ms('jobs.usage_date') }}) as part_start_ms,
        least(jobs.end_ms, {{ day_start_ms('jobs.usage_date') }} + 86400000) as part_end_ms
    from {{ ref('stg_scheduler__jobs') }} as jobs
),

node_counts as (
    select
        node_lists.node_names,
        count(distinct node_name) as node_count
    from (select distinct node_names from jobs) as node_lists
    {{ cross_join_items('node_lists.node_names', 'node_name') }}
    group by node_lists.node_names
),

recorded as (
    select
        jobs.usage_date,
        jobs.job_key,
        sum((jobs.part_end_ms - jobs.part_start_ms) * node_counts.node_count) as node_ms,
        sum({{ as_weight('jobs.gpu_units') }} * (jobs.part_end_ms - jobs.part_start_ms)) as gpu_time,
        sum({{ as_weight('jobs.memory_mib') }} * (jobs.part_end_ms - jobs.part_start_ms)) as memory_time
    from jobs
    inner join node_counts on jobs.node_names = node_counts.node_names
    where jobs.part_end_ms > jobs.part_start_ms
    group by jobs.usage_date, jobs.job_key
),

held_time as (
    select
        payers.usage_date,
        payers.job_key,
        sum(node_hours.end_ms - node_hours.start_ms) as node_ms
    from {{ ref('int_job_node_hours') }} as node_hours
    inner join {{ ref('int_job_payers') }} as payers on node_hours.job_number = payers.job_number
    where {{ in_window('payers.usage_date') }}
    group by payers.usage_date, payers.job_key
),

held as (
    select
        usage_date,
        job_key,
        count(distinct {{ key_of(['team_id', 'project_id', 'user_name']) }}) as payer_count,
        -- Seconds are whole units of the scheduler again, which nine decimals keep.
        sum(round(gpu_seconds * 25200000)) as gpu_time,
        sum(round(memory_gib_seconds * 1024000)) as memory_time
    from {{ ref('fct_job_usage_hourly') }}
    where {{ in_window('usage_date') }}
    group by usage_date, job_key
)

select
    coalesce(recorded.usage_date, held.usage_date) as usage_date,
    coalesce(recorded.job_key, held.job_key) as job_key,
    held.payer_count,
    recorded.node_ms as recorded_node_ms,
    held_time.node_ms as held_node_ms,
    recorded.gpu_time as recorded_gpu_time,
    held.gpu_time as held_gpu_time,
    recorded.memory_time as recorded_memory_time,
    held.memory_time as held_memory_time
from recorded
full outer join held on recorded.usage_date = held.usage_date and recorded.job_key = held.job_key
left join held_time on held.usage_date = held_time.usage_date and held.job_key = held_time.job_key
where
    recorded.job_key is null
    or held.job_key is null
    or held.payer_count <> 1
    or recorded.node_ms <> coalesce(held_time.node_ms, 0)
    or recorded.gpu_time <> held.gpu_time
    or recorded.memory_time <> held.memory_time
