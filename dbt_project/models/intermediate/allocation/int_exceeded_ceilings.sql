-- grain: one row per UTC day, pool, hourly component and currency whose users would pay more idle cost than their ceiling allows
{%- set pool_cost = ['usage_date', 'pool_id', 'component', 'currency'] %}

with ceilings as (
    select * from {{ ref('int_allocation_policies') }}
    where idle_ceiling is not null
),

costs as (
    select
        {{ pool_cost | join(', ') }},
        cast(sum(cost) as numeric(38, 9)) as cost
    from {{ ref('int_pool_hour_costs') }}
    group by {{ pool_cost | join(', ') }}
),

team_sums as (
    select
        {{ qualified('uncapped', pool_cost) }},
        cast(sum(uncapped.amount) as numeric(38, 9)) as idle_cost
    from {{ ref('int_idle_uncapped') }} as uncapped
    -- Most pools have no ceiling, and nothing of them has to be summed.
    inner join ceilings on {{ equal_on('uncapped', 'ceilings', ['usage_date', 'pool_id', 'component']) }}
    -- Job runs have numbers, and the platform has none.
    where uncapped.job_number is not null or uncapped.team_id <> 'platform'
    group by {{ qualified('uncapped', pool_cost) }}
),

final as (
    select
        {{ qualified('costs', pool_cost) }},
        ceilings.policy_row as ceiling_row,
        {{ times_rate('costs.cost', 'ceilings.idle_ceiling') }} as allowed_cost
    from costs
    inner join ceilings
        on
            costs.usage_date = ceilings.usage_date
            and costs.pool_id = ceilings.pool_id
            and costs.component = ceilings.component
    inner join team_sums on {{ equal_on('costs', 'team_sums', pool_cost) }}
    where
        costs.cost > 0
        and {{ nano_units('team_sums.idle_cost') }} * 1000000000
        > {{ nano_units('costs.cost') }} * {{ nano_units('ceilings.idle_ceiling') }}
)

select * from final
