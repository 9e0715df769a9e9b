-- grain: one row per UTC day and project, as the policy of that day says
select
    usage_date,
    project_id,
    project_name,
    team_id
from {{ ref('int_project_days') }}
