{#
    Nobody pays for their own adjustment: the funder is not the team in scope, nor below it in the hierarchy, nor the team
    of the project in scope, on any day on which the adjustment is valid.
#}
{% test funded_by_others(model, key) %}
    with recursive {{ hierarchy_and_ancestors(ref('teams'), 'team_id', 'parent_team_id') }},

    seed_rows as (
        {{ named_seed_rows(model, key) }}
    ),

    scope_teams as (
        select
            seed_row,
            team_id as scope_team_id,
            team_id as below_team_id,
            first_day,
            end_day
        from seed_rows
        where team_id is not null
        union all
        select
            seed_rows.seed_row,
            seed_rows.team_id as scope_team_id,
            ancestors.member as below_team_id,
            greatest(seed_rows.first_day, ancestors.first_day) as first_day,
            least(seed_rows.end_day, ancestors.end_day) as end_day
        from seed_rows
        inner join ancestors on seed_rows.team_id = ancestors.ancestor
        union all
        select
            seed_rows.seed_row,
            projects.team_id as scope_team_id,
            projects.team_id as below_team_id,
            greatest(seed_rows.first_day, projects.first_day) as first_day,
            least(seed_rows.end_day, projects.end_day) as end_day
        from seed_rows
        inner join ({{ named_seed_rows(ref('projects'), ['project_id']) }}) as projects
            on seed_rows.project_id = projects.project_id
    )

    select distinct
        seed_rows.seed_file,
        seed_rows.seed_row,
        {{ dbt.concat([
            "'funded_by = '", "seed_rows.funded_by", "' pays for its own adjustment: it belongs to '",
            "scope_teams.scope_team_id", "', which is in scope'"
        ]) }} as problem,
        'name another team, platform or all in funded_by' as remedy
    from seed_rows
    inner join scope_teams
        on seed_rows.seed_row = scope_teams.seed_row and seed_rows.funded_by = scope_teams.below_team_id
    where scope_teams.first_day < scope_teams.end_day
{% endtest %}
