-- grain: one row per row of seeds/policy/projects.csv
select
    project_id,
    project_name,
    team_id,
    coalesce(valid_from, date '1970-01-01') as valid_from,
    coalesce(valid_to, date '9999-12-31') as valid_to,
    reason,
    {{ policy_row('projects', ['project_id']) }} as policy_row,
    {{ key_of(['project_id', 'project_name', 'team_id', 'valid_from', 'reason']) }} as row_hash
from {{ ref('projects') }}
