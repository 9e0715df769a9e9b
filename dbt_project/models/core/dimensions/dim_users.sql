-- grain: one row per user name, with the team that its newest job was charged to
select
    user_name,
    team_id as latest_team_id,
    usage_date as last_seen_date
from {{ ref('fct_job_days') }}
where user_name is not null
qualify row_number() over (partition by user_name order by usage_date desc, job_key desc) = 1
