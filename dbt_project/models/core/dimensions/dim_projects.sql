-- grain: one row per project
select
    project_id,
    project_name,
    team_id
from {{ ref('int_projects') }}
