-- grain: one row per row of seeds/policy/teams.csv
select
    team_id,
    team_name,
    parent_team_id,
    cost_centre,
    headcount,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('teams', ['team_id']) }} as policy_row,
    {{ key_of(['team_id', 'team_name', 'parent_team_id', 'cost_centre', 'headcount', 'valid_from', 'reason']) }} as row_hash
from {{ ref('teams') }}
