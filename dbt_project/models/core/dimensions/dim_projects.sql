-- grain: one row per project, as the newest built day knows it
select
    project_id,
    project_name,
    team_id
from {{ ref('fct_project_days') }}
qualify row_number() over (partition by project_id order by usage_date desc) = 1
