-- grain: one row per month, team and currency: what the team's used capacity costs under each method
{%- set methods = ['direct', 'time', 'complexity'] %}

with costs as (
    select * from {{ ref('rpt_method_costs_daily') }}
    where {{ in_months('usage_date') }}
),

teams as (
    select * from {{ ref('fct_team_days') }}
    where {{ in_months('usage_date') }}
),

monthly as (
    select
        month_date,
        team_id,
        {%- for method in methods %}
        cast(sum({{ method }}_method_cost) as numeric(38, 9)) as {{ method }}_method_cost,
        {%- endfor %}
        cast(sum(charged_cost) as numeric(38, 9)) as charged_cost,
        currency
    from costs
    group by month_date, team_id, currency
),

names as (
    select
        {{ month_of('usage_date') }} as month_date,
        team_id,
        team_name
    from teams
    qualify row_number() over (partition by {{ month_of('usage_date') }}, team_id order by usage_date desc) = 1
),

{%- set of_methods = 'monthly.direct_method_cost, monthly.time_method_cost, monthly.complexity_method_cost' %}

final as (
    select
        monthly.month_date,
        monthly.team_id,
        coalesce(names.team_name, monthly.team_id) as team_name,
        monthly.currency,
        monthly.charged_cost,
        {{ of_methods }},
        least({{ of_methods }}) as lowest_cost,
        greatest({{ of_methods }}) as highest_cost,
        cast(greatest({{ of_methods }}) - least({{ of_methods }}) as numeric(38, 9)) as range_cost
    from monthly
    left join names on monthly.month_date = names.month_date and monthly.team_id = names.team_id
)

select * from final
