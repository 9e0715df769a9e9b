-- grain: one row per project, as its newest row says
select
    project_id,
    project_name,
    team_id
from {{ ref('stg_policy__projects') }}
qualify row_number() over (partition by project_id order by valid_from desc) = 1
