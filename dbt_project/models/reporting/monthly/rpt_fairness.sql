-- grain: one row per month, compute pool, team and currency: what the team pays beside what it uses and what it causes
-- The yardstick is the Shapley value of the month: a group of teams alone would have needed capacity for its own peak
-- hour, so it would have cost the pool's cost times that peak over the peak of all. Up to 12 teams every group is worked
-- out; above, a fixed number of orders in which teams could have joined.
{%- set pool_month = ['month_date', 'pool_id'] %}

with usage_hours as (
    select
        usage_hours.*,
        {{ month_of('usage_date') }} as month_date
    from {{ ref('fct_team_hours') }} as usage_hours
    where {{ in_months('usage_date') }}
),

team_costs as (
    select * from {{ ref('rpt_team_costs_daily') }}
    where {{ in_months('usage_date') }} and component in ('gpu', 'cpu', 'memory', 'energy')
),

team_names as (
    select
        {{ month_of('usage_date') }} as month_date,
        team_id,
        team_name
    from {{ ref('fct_team_days') }}
    where {{ in_months('usage_date') }}
    qualify row_number() over (partition by {{ month_of('usage_date') }}, team_id order by usage_date desc) = 1
),

pool_names as (
    select
        {{ month_of('usage_date') }} as month_date,
        pool_id,
        pool_name
    from {{ ref('fct_pool_days') }}
    where {{ in_months('usage_date') }}
    qualify row_number() over (partition by {{ month_of('usage_date') }}, pool_id order by usage_date desc) = 1
),

-- A pool is measured by its GPUs, or by its cores if none of its GPUs was ever held.
measures as (
    select
        {{ pool_month | join(', ') }},
        case when sum(gpu_seconds) > 0 then 'gpu' else 'cpu' end as measure
    from usage_hours
    group by {{ pool_month | join(', ') }}
),

held as (
    select
        usage_hours.month_date,
        usage_hours.pool_id,
        usage_hours.hour_at,
        usage_hours.team_id,
        usage_hours.self_declared_rule,
        measures.measure,
        case measures.measure when 'gpu' then usage_hours.gpu_seconds else usage_hours.cpu_core_seconds end as held_seconds
    from usage_hours
    inner join measures on {{ equal_on('usage_hours', 'measures', pool_month) }}
),

-- Nanoseconds of an hour fit into 64 bits up to two and a half million GPUs or cores in one pool.
demands as (
    select
        {{ pool_month | join(', ') }},
        hour_at,
        team_id,
        cast({{ nano_units('sum(held_seconds)') }} as int64) as demand
    from held
    group by {{ pool_month | join(', ') }}, hour_at, team_id
    having sum(held_seconds) > 0
),

weights as (
    {{ shapley_weights('demands', pool_month) }}
),

pool_costs as (
    select
        {{ pool_month | join(', ') }},
        currency,
        cast(sum(total_cost) as numeric(38, 9)) as pool_cost,
        cast(sum(idle_cost) as numeric(38, 9)) as pool_idle_cost
    from team_costs
    group by {{ pool_month | join(', ') }}, currency
),

weighted as (
    select
        pool_costs.*,
        weights.team_id,
        weights.weight,
        weights.shapley_method
    from pool_costs
    inner join weights on {{ equal_on('pool_costs', 'weights', pool_month) }}
),

shapley as (
    {{ split('weighted', ['pool_cost'], 'weight', by=pool_month + ['currency'], order_by=['team_id']) }}
),

charged as (
    select
        {{ pool_month | join(', ') }},
        currency,
        team_id,
        cast(sum(total_cost) as numeric(38, 9)) as charged_cost,
        cast(sum(idle_cost) as numeric(38, 9)) as idle_cost
    from team_costs
    group by {{ pool_month | join(', ') }}, currency, team_id
),

used as (
    select
        {{ pool_month | join(', ') }},
        team_id,
        max(measure) as measure,
        cast(sum(held_seconds) as numeric(38, 9)) as used_seconds,
        cast(
            sum(case when self_declared_rule is not null then held_seconds else 0 end) as numeric(38, 9)
        ) as self_declared_seconds
    from held
    group by {{ pool_month | join(', ') }}, team_id
),

declared_rules as (
    select
        {{ pool_month | join(', ') }},
        team_id,
        string_agg(self_declared_rule, ', ' order by self_declared_rule) as self_declared_rules
    from (
        select distinct {{ pool_month | join(', ') }}, team_id, self_declared_rule
        from held
        where self_declared_rule is not null
    ) as rules
    group by {{ pool_month | join(', ') }}, team_id
),

pool_used as (
    select
        {{ pool_month | join(', ') }},
        cast(sum(used_seconds) as numeric(38, 9)) as used_seconds
    from used
    group by {{ pool_month | join(', ') }}
),

-- Whoever pays for a pool or uses it.
team_rows as (
    select {{ pool_month | join(', ') }}, currency, team_id
    from charged
    union distinct
    select {{ pool_month | join(', ') }}, currency, team_id
    from shapley
),

compared as (
    select
        {{ qualified('team_rows', pool_month) }},
        team_rows.currency,
        team_rows.team_id,
        measures.measure,
        coalesce(used.used_seconds, 0) as used_seconds,
        coalesce(pool_used.used_seconds, 0) as pool_used_seconds,
        coalesce(used.self_declared_seconds, 0) as self_declared_seconds,
        declared_rules.self_declared_rules,
        coalesce(charged.charged_cost, 0) as charged_cost,
        coalesce(charged.idle_cost, 0) as idle_cost,
        pool_costs.pool_cost,
        pool_costs.pool_idle_cost,
        coalesce(shapley.pool_cost_part, 0) as shapley_cost,
        shapley.shapley_method
    from team_rows
    inner join pool_costs on {{ equal_on('team_rows', 'pool_costs', pool_month + ['currency']) }}
    left join measures on {{ equal_on('team_rows', 'measures', pool_month) }}
    left join pool_used on {{ equal_on('team_rows', 'pool_used', pool_month) }}
    left join used on {{ equal_on('team_rows', 'used', pool_month + ['team_id']) }}
    left join declared_rules on {{ equal_on('team_rows', 'declared_rules', pool_month + ['team_id']) }}
    left join charged on {{ equal_on('team_rows', 'charged', pool_month + ['currency', 'team_id']) }}
    left join shapley on {{ equal_on('team_rows', 'shapley', pool_month + ['currency', 'team_id']) }}
),

-- What is divided, as whole numbers.
weighed as (
    select
        compared.*,
        {{ nano_units('used_seconds') }} as used_weight,
        {{ nano_units('pool_used_seconds') }} as pool_used_weight,
        {{ nano_units('idle_cost') }} as idle_weight,
        {{ nano_units('pool_idle_cost') }} as pool_idle_weight,
        {{ nano_units('self_declared_seconds') }} as self_declared_weight
    from compared
),

final as (
    select
        compared.month_date,
        compared.pool_id,
        coalesce(pool_names.pool_name, compared.pool_id) as pool_name,
        compared.team_id,
        coalesce(team_names.team_name, compared.team_id) as team_name,
        compared.currency,
        compared.measure,
        {{ seconds_to_hours('compared.used_seconds') }} as used_hours,
        {{ quotient('compared.used_weight', 'compared.pool_used_weight') }} as used_share,
        cast(compared.charged_cost as numeric(38, 9)) as charged_cost,
        cast(compared.pool_cost as numeric(38, 9)) as pool_cost,
        {{ share('compared.charged_cost', as_weight('3600000000000'), 'compared.used_weight') }} as effective_rate,
        {{ share('compared.pool_cost', as_weight('3600000000000'), 'compared.pool_used_weight') }} as pool_rate,
        cast(compared.idle_cost as numeric(38, 9)) as idle_cost,
        case
            when compared.pool_idle_cost > 0 and compared.idle_cost >= 0
                then {{ quotient('compared.idle_weight', 'compared.pool_idle_weight') }}
        end as idle_share,
        cast(compared.shapley_cost as numeric(38, 9)) as shapley_cost,
        cast(compared.charged_cost - compared.shapley_cost as numeric(38, 9)) as shapley_distance,
        compared.shapley_method,
        {{ quotient('compared.self_declared_weight', 'compared.used_weight') }} as self_declared_share,
        compared.self_declared_rules
    from weighed as compared
    left join pool_names on {{ equal_on('compared', 'pool_names', pool_month) }}
    left join team_names on compared.month_date = team_names.month_date and compared.team_id = team_names.team_id
    where pool_names.pool_id is not null
)

select * from final
