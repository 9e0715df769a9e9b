-- grain: one row per team
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
from {{ ref('int_teams') }}
