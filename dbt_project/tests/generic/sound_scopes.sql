{#
    What the hierarchy of teams says of adjustments, on all days on which each is valid:
    - Nobody pays for their own adjustment: the funder is not the team in scope, nor below it, nor the team of the project
      in scope.
    - A team and a project in one scope meet: the project is the team's, or that of a team below it.
#}
{% test sound_scopes(model, key) %}
    with recursive {{ hierarchy_and_ancestors(ref('teams'), 'team_id', 'parent_team_id') }},

    seed_rows as (
        {{ named_seed_rows(model, key) }}
    ),

    projects as (
        {{ named_seed_rows(ref('projects'), ['project_id']) }}
    ),

    chains as (
        {{ stretches('select * from ancestors', ['member', 'ancestor']) }}
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
        inner join projects on seed_rows.project_id = projects.project_id
    ),

    scope_projects as (
        select
            seed_rows.seed_file,
            seed_rows.seed_row,
            seed_rows.project_id,
            seed_rows.team_id,
            projects.team_id as project_team_id,
            greatest(seed_rows.first_day, projects.first_day) as first_day,
            least(seed_rows.end_day, projects.end_day) as end_day
        from seed_rows
        inner join projects
            on
                seed_rows.project_id = projects.project_id
                and seed_rows.first_day < projects.end_day
                and projects.first_day < seed_rows.end_day
        where seed_rows.team_id <> projects.team_id
    ),

    -- The first day on which the team of the project is not below the other one.
    strangers as (
        select
            scope_projects.seed_file,
            scope_projects.seed_row,
            scope_projects.project_id,
            scope_projects.team_id,
            scope_projects.project_team_id,
            coalesce(chains.end_day, scope_projects.first_day) as first_day
        from scope_projects
        left join chains
            on
                scope_projects.project_team_id = chains.member
                and scope_projects.team_id = chains.ancestor
                and scope_projects.first_day >= chains.first_day
                and scope_projects.first_day < chains.end_day
        where coalesce(chains.end_day, scope_projects.first_day) < scope_projects.end_day
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
    union all
    select
        seed_file,
        seed_row,
        {{ dbt.concat([
            "'project_id = '", "project_id", "' belongs to '", "project_team_id", "' on '", as_text("first_day"),
            "', which is not '", "team_id", "' nor below it'"
        ]) }} as problem,
        'leave team_id or project_id empty, or name the team of the project' as remedy
    from strangers
{% endtest %}
