-- grain: one row per part of a job run and UTC day, with its payer
{%- set of_first_part = 'over (partition by jobs.usage_date, jobs.job_key order by jobs.start_ms, jobs.part_id)' %}

with jobs as (
    select * from {{ ref('stg_scheduler__jobs') }}
),

days as (
    select * from {{ ref('int_days') }}
),

payers as (
    select * from {{ ref('int_payers') }}
),

-- The parts of one job have one payer (and one partition), that of the first part, however their own labels differ.
payer_subjects as (
    select
        jobs.*,
        -- A pod that is made anew keeps its name; its start tells the two apart. Good for this run alone.
        row_number() over (order by jobs.usage_date, jobs.job_key, jobs.part_id, jobs.start_ms) as part_number,
        first_value(
            {{ payer_subject_key('jobs.cluster_id', 'jobs.account', 'jobs.user_name', 'jobs.namespace', labels='jobs.labels') }}
        ) {{ of_first_part }} as subject_key,
        first_value(jobs.user_name) {{ of_first_part }} as payer_user_name,
        first_value(jobs.partition_name) {{ of_first_part }} as payer_partition_name
    from jobs
),

final as (
    select
        payer_subjects.*,
        coalesce(payers.team_id, 'unattributed') as team_id,
        payers.project_id,
        payers.payer_rule,
        greatest(payer_subjects.start_ms, days.day_start_ms) as part_start_ms,
        least(payer_subjects.end_ms, days.day_end_ms) as part_end_ms
    from payer_subjects
    inner join days on payer_subjects.usage_date = days.usage_date
    left join payers
        on payer_subjects.usage_date = payers.usage_date and payer_subjects.subject_key = payers.subject_key
)

select * from final
