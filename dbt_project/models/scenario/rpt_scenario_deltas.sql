-- grain: one row per month, team, component and currency: what the books say, what the scenario would say, the change
with costs as (
    select
        {{ month_of('usage_date') }} as month_date,
        team_id,
        component,
        currency,
        amount as actual_cost,
        cast(0 as numeric(38, 9)) as scenario_cost
    from {{ source('books', 'fct_cost_allocations') }}
    where {{ in_window('usage_date') }}
    union all
    select
        {{ month_of('usage_date') }} as month_date,
        team_id,
        component,
        currency,
        cast(0 as numeric(38, 9)) as actual_cost,
        amount as scenario_cost
    from {{ ref('scenario_costs') }}
),

teams as (
    select
        team_id,
        team_name
    from {{ ref('int_team_days') }}
    qualify row_number() over (partition by team_id order by usage_date desc) = 1
),

summed as (
    select
        month_date,
        team_id,
        component,
        currency,
        cast(sum(actual_cost) as numeric(38, 9)) as actual_cost,
        cast(sum(scenario_cost) as numeric(38, 9)) as scenario_cost
    from costs
    group by month_date, team_id, component, currency
),

final as (
    select
        '{{ var("scenario") }}' as scenario_name,
        date '{{ var("window_start") }}' as first_date,
        date '{{ var("window_end") }}' as end_date,
        summed.month_date,
        summed.team_id,
        coalesce(teams.team_name, summed.team_id) as team_name,
        summed.component,
        summed.currency,
        summed.actual_cost,
        summed.scenario_cost,
        cast(summed.scenario_cost - summed.actual_cost as numeric(38, 9)) as change_cost
    from summed
    left join teams on summed.team_id = teams.team_id
)

select * from final
