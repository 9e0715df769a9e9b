-- grain: one row per UTC day of the window and team, as the row valid on the day says, with its place in the hierarchy
-- `platform` keeps what the platform pays, `unattributed` what no rule claims; both always exist.
with recursive days as (
    select usage_date from {{ ref('int_days') }}
),

teams as (
    select
        days.usage_date,
        teams.team_id,
        teams.team_name,
        teams.parent_team_id,
        teams.cost_centre,
        teams.headcount
    from days
    inner join {{ ref('stg_policy__teams') }} as teams on {{ valid_on('teams', 'days.usage_date') }}
),

built_in as (
    select
        'platform' as team_id,
        'Platform' as team_name
    union all
    select
        'unattributed' as team_id,
        'Unattributed' as team_name
),

all_teams as (
    select * from teams
    union all
    select
        days.usage_date,
        built_in.team_id,
        built_in.team_name,
        cast(null as {{ dbt.type_string() }}) as parent_team_id,
        cast(null as {{ dbt.type_string() }}) as cost_centre,
        cast(null as int64) as headcount
    from days
    cross join built_in
    left join teams on days.usage_date = teams.usage_date and built_in.team_id = teams.team_id
    where teams.team_id is null
),

billing_modes as (
    select
        all_teams.usage_date,
        all_teams.team_id,
        modes.billing_mode
    from all_teams
    inner join {{ ref('stg_policy__billing_modes') }} as modes
        on
            modes.team_id in (all_teams.team_id, '*')
            and {{ valid_on('modes', 'all_teams.usage_date') }}
    where all_teams.team_id not in ('platform', 'unattributed')
    -- The team's own row before that of all teams.
    qualify row_number() over (
        partition by all_teams.usage_date, all_teams.team_id
        order by case when modes.team_id = '*' then 1 else 0 end
    ) = 1
),

hierarchy as (
    select
        usage_date,
        team_id,
        team_id as root_team_id,
        team_name as team_path,
        1 as team_level
    from all_teams
    where parent_team_id is null
    union all
    select
        all_teams.usage_date,
        all_teams.team_id,
        hierarchy.root_team_id,
        hierarchy.team_path || ' / ' || all_teams.team_name as team_path,
        hierarchy.team_level + 1 as team_level
    from all_teams
    inner join hierarchy
        on all_teams.usage_date = hierarchy.usage_date and all_teams.parent_team_id = hierarchy.team_id
    where hierarchy.team_level < 20
),

final as (
    select
        all_teams.usage_date,
        all_teams.team_id,
        all_teams.team_name,
        all_teams.parent_team_id,
        hierarchy.root_team_id,
        hierarchy.team_path,
        cast(hierarchy.team_level as int64) as team_level,
        all_teams.cost_centre,
        all_teams.headcount,
        coalesce(billing_modes.billing_mode, 'showback') as billing_mode,
        all_teams.team_id in ('platform', 'unattributed') as is_built_in
    from all_teams
    left join hierarchy
        on all_teams.usage_date = hierarchy.usage_date and all_teams.team_id = hierarchy.team_id
    left join billing_modes
        on all_teams.usage_date = billing_modes.usage_date and all_teams.team_id = billing_modes.team_id
)

select * from final
