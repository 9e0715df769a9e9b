-- grain: one row per UTC day, pool, component, team and currency: what the team's used capacity costs under each method
-- Used GPU, CPU and memory cost alone: idle, overhead and transfers follow their own policies, which `apportion simulate`
-- works out in full.
{%- set components = ['gpu', 'cpu', 'memory'] %}
{%- set methods = ['direct', 'time', 'complexity'] %}
{%- set pool_hour = ['hour_at', 'pool_id', 'component', 'currency'] %}

with usage_hours as (
    select * from {{ ref('fct_team_hours') }}
    where {{ in_window('usage_date') }}
),

pool_hours as (
    select * from {{ ref('fct_pool_hours') }}
    where {{ in_window('usage_date') }} and component in ('gpu', 'cpu', 'memory')
),

teams as (
    select * from {{ ref('fct_team_days') }}
    where {{ in_window('usage_date') }}
),

pools as (
    select * from {{ ref('fct_pool_days') }}
    where {{ in_window('usage_date') }}
),

team_hours as (
    {%- for component in components %}
    select
        hour_at,
        pool_id,
        '{{ component }}' as component,
        {%- for weight in methods + ['charged'] %}
        {{ as_weight('sum(' ~ component ~ '_' ~ weight ~ '_weight)') }} as {{ weight }}_weight,
        {%- endfor %}
        team_id
    from usage_hours
    where {{ component }}_direct_weight > 0
    group by hour_at, pool_id, team_id
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

-- The method in force counts with the very weights of the books, intensity included.
weighted as (
    select
        {{ qualified('pool_hours', pool_hour) }},
        pool_hours.usage_date,
        pool_hours.used_cost,
        pool_hours.method,
        {%- for method in methods %}
        case
            when pool_hours.method = '{{ method }}' then team_hours.charged_weight
            else team_hours.{{ method }}_weight
        end as {{ method }},
        {%- endfor %}
        team_hours.team_id
    from pool_hours
    inner join team_hours
        on
            pool_hours.hour_at = team_hours.hour_at
            and pool_hours.pool_id = team_hours.pool_id
            and pool_hours.component = team_hours.component
),

parts as (
    {{ split_by_each('weighted', 'used_cost', methods, by=pool_hour, order_by=['team_id']) }}
),

daily as (
    select
        usage_date,
        pool_id,
        component,
        team_id,
        {%- for method in methods %}
        cast(sum({{ method }}_cost) as numeric(38, 9)) as {{ method }}_method_cost,
        {%- endfor %}
        cast(
            sum(
                case method
                    {%- for method in methods %}
                    when '{{ method }}' then {{ method }}_cost
                    {%- endfor %}
                end
            ) as numeric(38, 9)
        ) as charged_cost,
        currency
    from parts
    group by usage_date, pool_id, component, team_id, currency
),

final as (
    select
        daily.usage_date,
        {{ month_of('daily.usage_date') }} as month_date,
        daily.pool_id,
        coalesce(pools.pool_name, daily.pool_id) as pool_name,
        daily.component,
        daily.team_id,
        coalesce(teams.team_name, daily.team_id) as team_name,
        daily.currency,
        daily.charged_cost,
        daily.direct_method_cost,
        daily.time_method_cost,
        daily.complexity_method_cost
    from daily
    left join teams on daily.usage_date = teams.usage_date and daily.team_id = teams.team_id
    left join pools on daily.usage_date = pools.usage_date and daily.pool_id = pools.pool_id
)

select * from final
