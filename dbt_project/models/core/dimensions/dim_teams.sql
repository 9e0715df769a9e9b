-- grain: one row per team, as the newest built day knows it
select
    team_id,
    team_name,
    parent_team_id,
    root_team_id,
    team_path,
    team_level,
    cost_centre,
    headcount,
    is_built_in
from {{ ref('fct_team_days') }}
qualify row_number() over (partition by team_id order by usage_date desc) = 1
