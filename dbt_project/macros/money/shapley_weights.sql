{#
    The Shapley value of a peak game, as integer weights: a group of teams needs as much as it demands in its own highest
    hour, and a team's weight is what it adds to that, summed over the orders in which the teams could join. `demands` holds
    the columns `game`, hour_at, team_id and demand (a whole number for each; what all teams demand of an hour fits into 64
    bits). Up to 12 teams every group is worked out (`exact`); above, a number of orders. Result: `game`, team_id, weight,
    shapley_method.
#}
{% macro shapley_weights(demands, game) -%}
    {%- set exact_players = 12 -%}
    {%- set hours_abreast = 24 -%}
    with players as (
        select
            {{ game | join(', ') }},
            team_id,
            row_number() over (partition by {{ game | join(', ') }} order by team_id) - 1 as player_number,
            count(*) over (partition by {{ game | join(', ') }}) as player_count
        from (select distinct {{ game | join(', ') }}, team_id from {{ demands }} as demands) as teams
    ),

    game_hours as (
        select
            {{ qualified('demands', game) }},
            demands.hour_at,
            max(players.player_count) as player_count
        from {{ demands }} as demands
        inner join players on {{ equal_on('demands', 'players', game + ['team_id']) }}
        group by {{ qualified('demands', game) }}, demands.hour_at
    ),

    -- Every group of teams in every hour. The demands stand side by side, so that a group's is a sum of columns.
    hour_demands as (
        select
            {{ qualified('demands', game) }},
            demands.hour_at,
            {%- for number in range(exact_players) %}
            {{ as_weight('sum(case when players.player_number = ' ~ number ~ ' then demands.demand else 0 end)') }} as demand_{{ number }},
            {%- endfor %}
            max(players.player_count) as player_count
        from {{ demands }} as demands
        inner join players on {{ equal_on('demands', 'players', game + ['team_id']) }}
        where players.player_count <= {{ exact_players }}
        group by {{ qualified('demands', game) }}, demands.hour_at
    ),

    group_peaks as (
        select
            {{ qualified('hour_demands', game) }},
            hour_demands.player_count,
            member_bits,
            {%- for number in range(exact_players) %}
            ((member_bits >> {{ number }}) & 1){{ ' as member_count,' if loop.last else ' +' }}
            {%- endfor %}
            max(
                {%- for number in range(exact_players) %}
                hour_demands.demand_{{ number }} * ((member_bits >> {{ number }}) & 1){{ ' +' if not loop.last }}
                {%- endfor %}
            ) as peak
        from hour_demands
        {{ cross_join_series('0', '(1 << hour_demands.player_count)', 1, 'member_bits') }}
        group by {{ qualified('hour_demands', game) }}, hour_demands.player_count, member_bits
    ),

    -- What a team adds to each group that it joins, counted as often as there are orders with that group before it. A group
    -- with the team in it is what remains, one without it is what was there before.
    exact_weights as (
        select
            {{ qualified('group_peaks', game) }},
            players.team_id,
            sum(
                group_peaks.peak * case
                    when (group_peaks.member_bits & (1 << players.player_number)) = 0
                        then
                            -{{ factorial('group_peaks.member_count') }}
                            * {{ factorial('(group_peaks.player_count - group_peaks.member_count - 1)') }}
                    else
                        {{ factorial('(group_peaks.member_count - 1)') }}
                        * {{ factorial('(group_peaks.player_count - group_peaks.member_count)') }}
                end
            ) as weight,
            'exact' as shapley_method
        from group_peaks
        inner join players on {{ equal_on('group_peaks', 'players', game) }}
        group by {{ qualified('group_peaks', game) }}, players.team_id
    ),

    -- Above: orders in which the teams join, drawn by a hash, so that they are the same everywhere. Fewer for larger pools, so
    -- that the work stays bounded.
    sample_sizes as (
        select
            {{ game | join(', ') }},
            max(player_count) as player_count,
            greatest(8, least(256, {{ floor_divide('500000', 'max(player_count) * count(*)') }})) as sample_count
        from game_hours
        where player_count > {{ exact_players }}
        group by {{ game | join(', ') }}
    ),

    orders as (
        select
            {{ qualified('sample_sizes', game) }},
            sample_sizes.sample_count,
            sample_number,
            players.team_id,
            row_number() over (
                partition by {{ qualified('sample_sizes', game) }}, sample_number
                order by {{ dbt.hash(dbt.concat(['players.team_id', "'#'", as_text('sample_number')])) }}, players.team_id
            ) as place
        from sample_sizes
        inner join players on {{ equal_on('sample_sizes', 'players', game) }}
        {{ cross_join_series('0', 'sample_sizes.sample_count', 1, 'sample_number') }}
    ),

    -- A day of hours stands side by side, so that there are few rows to bring into each order.
    numbered_hours as (
        select
            {{ game | join(', ') }},
            hour_at,
            row_number() over (partition by {{ game | join(', ') }} order by hour_at) - 1 as hour_number
        from game_hours
        where player_count > {{ exact_players }}
    ),

    team_hours as (
        select
            {{ qualified('numbered_hours', game) }},
            {{ floor_divide('numbered_hours.hour_number', hours_abreast) }} as hour_group,
            demands.team_id,
            {%- for number in range(hours_abreast) %}
            max(
                case when mod(numbered_hours.hour_number, {{ hours_abreast }}) = {{ number }} then demands.demand else 0 end
            ) as demand_{{ number }}{{ ',' if not loop.last }}
            {%- endfor %}
        from numbered_hours
        inner join {{ demands }} as demands
            on {{ equal_on('numbered_hours', 'demands', game) }} and numbered_hours.hour_at = demands.hour_at
        group by {{ qualified('numbered_hours', game) }}, hour_group, demands.team_id
    ),

    hour_groups as (
        select distinct {{ game | join(', ') }}, hour_group
        from team_hours
    ),

    joining as (
        select
            {{ qualified('orders', game) }},
            orders.sample_count,
            orders.sample_number,
            orders.team_id,
            orders.place,
            hour_groups.hour_group,
            {%- for number in range(hours_abreast) %}
            coalesce(team_hours.demand_{{ number }}, 0) as demand_{{ number }}{{ ',' if not loop.last }}
            {%- endfor %}
        from orders
        inner join hour_groups on {{ equal_on('orders', 'hour_groups', game) }}
        left join team_hours
            on
                {{ equal_on('orders', 'team_hours', game + ['team_id']) }}
                and hour_groups.hour_group = team_hours.hour_group
    ),

    {%- set sums = [] %}
    {%- for number in range(hours_abreast) %}
    {%- do sums.append(dict(weight='demand_' ~ number, running='joined_' ~ number)) %}
    {%- endfor %}

    joined as (
        {{ running_sums('joining', sums, by=game + ['sample_number', 'hour_group'], order_by=['place']) }}
    ),

    places as (
        select
            {{ game | join(', ') }},
            sample_count,
            sample_number,
            place,
            team_id,
            max(
                greatest(
                    {%- for number in range(hours_abreast) %}
                    joined_{{ number }}{{ ',' if not loop.last }}
                    {%- endfor %}
                )
            ) as peak
        from joined
        group by {{ game | join(', ') }}, sample_count, sample_number, place, team_id
    ),

    added as (
        select
            {{ game | join(', ') }},
            sample_count,
            team_id,
            peak - lag(peak, 1, 0) over (
                partition by {{ game | join(', ') }}, sample_number order by place
            ) as added_peak
        from places
    ),

    sampled_weights as (
        select
            {{ game | join(', ') }},
            team_id,
            sum({{ as_weight('added_peak') }}) as weight,
            {{ dbt.concat(["'sampled, '", as_text('max(sample_count)'), "' orders'"]) }} as shapley_method
        from added
        group by {{ game | join(', ') }}, team_id
    )

    select * from exact_weights
    union all
    select * from sampled_weights
{%- endmacro %}
