-- grain: one row per UTC day of the window, team and team above it, the team itself among them
with recursive teams as (
    select
        usage_date,
        team_id,
        parent_team_id
    from {{ ref('int_team_days') }}
),

ancestors as (
    select
        usage_date,
        team_id,
        team_id as ancestor_team_id,
        parent_team_id as next_team_id,
        1 as steps
    from teams
    union all
    select
        ancestors.usage_date,
        ancestors.team_id,
        teams.team_id as ancestor_team_id,
        teams.parent_team_id as next_team_id,
        ancestors.steps + 1 as steps
    from ancestors
    inner join teams on ancestors.usage_date = teams.usage_date and ancestors.next_team_id = teams.team_id
    where ancestors.steps < 20
)

select
    usage_date,
    team_id,
    ancestor_team_id
from ancestors
