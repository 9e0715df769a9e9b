-- grain: one row per UTC day of the window and project, as the row valid on the day says
with days as (
    select * from {{ ref('int_days') }}
),

projects as (
    select * from {{ ref('stg_policy__projects') }}
)

select
    days.usage_date,
    projects.project_id,
    projects.project_name,
    projects.team_id
from days
inner join projects on {{ valid_on('projects', 'days.usage_date') }}
