-- grain: one row per UTC day and team, as the policy of that day says
select
    usage_date,
    team_id,
    team_name,
    parent_team_id,
    root_team_id,
    team_path,
    team_level,
    cost_centre,
    headcount,
    billing_mode,
    is_built_in
from {{ ref('int_team_days') }}
