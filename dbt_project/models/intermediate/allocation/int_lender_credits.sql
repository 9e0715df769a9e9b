-- grain: one row per UTC day, pool, currency and team that lent or borrowed entitled GPUs
-- Whoever uses more of a base pool than entitled pays a premium to those whose entitled GPUs were free to be used.
{%- set pool_hour = ['usage_date', 'hour_ms', 'pool_id'] %}

with pools as (
    select
        pool_days.usage_date,
        pool_days.pool_id,
        policies.lender_share,
        policies.policy_row
    from {{ ref('int_pool_days') }} as pool_days
    inner join {{ ref('int_allocation_policies') }} as policies
        on
            pool_days.usage_date = policies.usage_date
            and pool_days.pool_id = policies.pool_id
            and policies.component = 'gpu'
            and policies.lender_share > 0
    where pool_days.pool_kind = 'compute' and pool_days.purchase_class in ('reserved', 'owned')
),

pool_hours as (
    select
        costs.usage_date,
        costs.hour_ms,
        costs.pool_id,
        costs.currency,
        costs.cost,
        costs.used + costs.down + costs.reserved + costs.stranded + costs.unscheduled as capacity,
        pools.lender_share,
        pools.policy_row
    from {{ ref('int_pool_hour_costs') }} as costs
    inner join pools on costs.usage_date = pools.usage_date and costs.pool_id = pools.pool_id
    where costs.component = 'gpu'
),

hours as (
    select distinct {{ pool_hour | join(', ') }}
    from pool_hours
),

-- What each team used of the pool in each hour, and what it was entitled to.
sides as (
    select
        {{ qualified('hours', pool_hour) }},
        drivers.team_id,
        drivers.quantity as used,
        {{ as_weight('0') }} as entitled
    from hours
    inner join {{ ref('int_drivers') }} as drivers
        on {{ equal_on('hours', 'drivers', pool_hour) }}
    where drivers.driver = 'gpu_seconds' and drivers.hour_ms is not null
    union all
    select
        {{ qualified('hours', pool_hour) }},
        entitlements.team_id,
        {{ as_weight('0') }} as used,
        {{ as_weight('entitlements.gpu_units') }} * 3600000 as entitled
    from hours
    inner join {{ ref('stg_policy__entitlements') }} as entitlements
        on hours.pool_id = entitlements.pool_id and {{ valid_on('entitlements', 'hours.usage_date') }}
),

teams as (
    select
        {{ pool_hour | join(', ') }},
        team_id,
        greatest(sum(used) - sum(entitled), 0) as borrowed,
        greatest(sum(entitled) - sum(used), 0) as lent
    from sides
    group by {{ pool_hour | join(', ') }}, team_id
),

lent_hours as (
    select
        {{ pool_hour | join(', ') }},
        least(sum(borrowed), sum(lent)) as quantity
    from teams
    group by {{ pool_hour | join(', ') }}
),

premiums as (
    select
        pool_hours.*,
        {{ share(
            'pool_hours.cost',
            'lent_hours.quantity * ' ~ nano_units('pool_hours.lender_share'),
            'pool_hours.capacity * ' ~ as_weight('1000000000')
        ) }} as premium
    from pool_hours
    inner join lent_hours on {{ equal_on('pool_hours', 'lent_hours', pool_hour) }}
    where lent_hours.quantity > 0 and pool_hours.capacity > 0
),

weighted as (
    select
        premiums.usage_date,
        premiums.hour_ms,
        premiums.pool_id,
        premiums.currency,
        premiums.policy_row,
        premiums.premium,
        teams.team_id,
        teams.borrowed,
        teams.lent
    from premiums
    inner join teams on {{ equal_on('premiums', 'teams', pool_hour) }}
    where premiums.premium <> 0
),

{%- for side in ['borrowed', 'lent'] %}

{{ side }}_parts as (
    {{ split('weighted', ['premium'], side, by=pool_hour + ['currency'], order_by=['team_id']) }}
),
{%- endfor %}

final as (
    select
        usage_date,
        pool_id,
        currency,
        'gpu' as component,
        policy_row,
        team_id,
        'used more of the pool than entitled, while others lent theirs' as reason,
        cast(sum(premium_part) as numeric(38, 9)) as amount
    from borrowed_parts
    where borrowed > 0
    group by usage_date, pool_id, currency, policy_row, team_id
    union all
    select
        usage_date,
        pool_id,
        currency,
        'gpu' as component,
        policy_row,
        team_id,
        'entitled GPUs that others used' as reason,
        cast(-sum(premium_part) as numeric(38, 9)) as amount
    from lent_parts
    where lent > 0
    group by usage_date, pool_id, currency, policy_row, team_id
)

select * from final
