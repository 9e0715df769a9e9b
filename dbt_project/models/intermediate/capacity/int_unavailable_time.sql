-- grain: one row per node, UTC day, cause, team (or none) and united stretch of time in which that cause holds
-- `down`: the node was down or drained. `reserved`: a team's reservation held it; without a team, that of any team.
-- Overlapping records are united, so that no second counts twice.
{%- set island = ['usage_date', 'cluster_id', 'node_name', 'cause', 'team_id'] %}

with node_events as (
    select * from {{ ref('stg_scheduler__node_events') }}
),

reservations as (
    select * from {{ ref('stg_scheduler__reservations') }}
),

payers as (
    select * from {{ ref('int_payers') }}
),

holders as (
    select reservations.*, {{ payer_subject_key('reservations.cluster_id', account='holder') }} as subject_key
    from reservations
    {{ cross_join_items('reservations.accounts', 'holder') }}
    union all
    select reservations.*, {{ payer_subject_key('reservations.cluster_id', user_name='holder') }} as subject_key
    from reservations
    {{ cross_join_items('reservations.users', 'holder') }}
),

-- A reservation that names no team, such as one for maintenance, holds nothing for anybody.
team_reservations as (
    select distinct
        holders.usage_date,
        holders.cluster_id,
        holders.node_names,
        holders.start_ms,
        holders.end_ms,
        payers.team_id
    from holders
    inner join payers on holders.usage_date = payers.usage_date and holders.subject_key = payers.subject_key
),

-- Two teams can hold one reservation, and a record can come twice: the same stretch counts once, or it would open two
-- islands.
stretches as (
    select
        usage_date,
        cluster_id,
        node_name,
        'down' as cause,
        cast(null as {{ dbt.type_string() }}) as team_id,
        start_ms,
        end_ms
    from node_events
    {%- for team in ['cast(null as ' ~ dbt.type_string() ~ ')', 'team_reservations.team_id'] %}
    union distinct
    select
        team_reservations.usage_date,
        team_reservations.cluster_id,
        node_name,
        'reserved' as cause,
        {{ team }} as team_id,
        team_reservations.start_ms,
        team_reservations.end_ms
    from team_reservations
    {{ cross_join_items('team_reservations.node_names', 'node_name') }}
    {%- endfor %}
),

-- A stretch opens a new island when nothing before it reaches its start.
marked as (
    select
        stretches.*,
        case
            when start_ms <= max(end_ms) over (
                partition by {{ island | join(', ') }}
                order by start_ms, end_ms
                rows between unbounded preceding and 1 preceding
            ) then 0
            else 1
        end as opens_island
    from stretches
    where end_ms > start_ms
),

islands as (
    select
        marked.*,
        sum(opens_island) over (
            partition by {{ island | join(', ') }}
            order by start_ms, end_ms
            rows between unbounded preceding and current row
        ) as island
    from marked
),

final as (
    select
        {{ island | join(', ') }},
        min(start_ms) as start_ms,
        max(end_ms) as end_ms
    from islands
    group by {{ island | join(', ') }}, island
)

select * from final
