-- grain: one row per month, team and currency: what the team's used capacity costs under each method
-- Used GPU, CPU and memory cost alone: idle, overhead and transfers follow their own policies, which `apportion simulate`
-- works out in full.
{%- set units = {
    'gpu': ('gpu_seconds', 25200000),
    'cpu': ('cpu_core_seconds', 1000000),
    'memory': ('memory_gib_seconds', 1024000),
} %}
{%- set methods = ['direct', 'time', 'complexity'] %}
{%- set pool_hour = ['hour_at', 'pool_id', 'component', 'currency'] %}

with usage_hours as (
    select * from {{ ref('fct_job_usage_hourly') }}
    where {{ in_months('usage_date') }}
),

pool_hours as (
    select * from {{ ref('fct_pool_hours') }}
    where {{ in_months('usage_date') }} and component in ('gpu', 'cpu', 'memory')
),

teams as (
    select * from {{ ref('fct_team_days') }}
    where {{ in_months('usage_date') }}
),

-- Quantities are whole units again, so that splits get the same digits as the books.
jobs as (
    select
        hour_at,
        pool_id,
        team_id,
        {%- for component, (seconds, unit) in units.items() %}
        {{ as_weight('sum(round(' ~ seconds ~ ' * ' ~ unit ~ '))') }} as {{ component }}_direct_weight,
        {{ as_weight('sum(round(' ~ seconds ~ ' * ' ~ unit ~ ') * round(class_weight * 1000))') }} as {{ component }}_complexity_weight,
        {{ as_weight('sum(' ~ component ~ '_weight)') }} as {{ component }}_charged_weight,
        {%- endfor %}
        {{ as_weight('sum(round(present_seconds * 1000))') }} as time_weight
    from usage_hours
    group by hour_at, pool_id, team_id, job_key
),

-- A job that holds nothing of a component has no part in its cost, however long it was there.
team_hours as (
    {%- for component in units %}
    select
        hour_at,
        pool_id,
        '{{ component }}' as component,
        team_id,
        sum({{ component }}_direct_weight) as direct_weight,
        sum(time_weight) as time_weight,
        sum({{ component }}_complexity_weight) as complexity_weight,
        sum({{ component }}_charged_weight) as charged_weight
    from jobs
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
        team_hours.team_id,
        {%- for method in methods %}
        case
            when pool_hours.method = '{{ method }}' then team_hours.charged_weight
            else team_hours.{{ method }}_weight
        end as {{ method }},
        {%- endfor %}
        team_hours.charged_weight as charged
    from pool_hours
    inner join team_hours
        on
            pool_hours.hour_at = team_hours.hour_at
            and pool_hours.pool_id = team_hours.pool_id
            and pool_hours.component = team_hours.component
),

parts as (
    {{ split_by_each('weighted', 'used_cost', ['charged'] + methods, by=pool_hour, order_by=['team_id']) }}
),

monthly as (
    select
        {{ month_of('usage_date') }} as month_date,
        {%- for method in ['charged'] + methods %}
        cast(sum({{ method }}_cost) as numeric(38, 9)) as {{ method }}_cost,
        {%- endfor %}
        team_id,
        currency
    from parts
    group by {{ month_of('usage_date') }}, team_id, currency
),

names as (
    select
        {{ month_of('usage_date') }} as month_date,
        team_id,
        team_name
    from teams
    qualify row_number() over (partition by {{ month_of('usage_date') }}, team_id order by usage_date desc) = 1
),

final as (
    select
        monthly.month_date,
        monthly.team_id,
        coalesce(names.team_name, monthly.team_id) as team_name,
        monthly.currency,
        monthly.charged_cost,
        monthly.direct_cost as direct_method_cost,
        monthly.time_cost as time_method_cost,
        monthly.complexity_cost as complexity_method_cost,
        least(monthly.direct_cost, monthly.time_cost, monthly.complexity_cost) as lowest_cost,
        greatest(monthly.direct_cost, monthly.time_cost, monthly.complexity_cost) as highest_cost,
        cast(
            greatest(monthly.direct_cost, monthly.time_cost, monthly.complexity_cost)
            - least(monthly.direct_cost, monthly.time_cost, monthly.complexity_cost) as numeric(38, 9)
        ) as range_cost
    from monthly
    left join names on monthly.month_date = names.month_date and monthly.team_id = names.team_id
)

select * from final
