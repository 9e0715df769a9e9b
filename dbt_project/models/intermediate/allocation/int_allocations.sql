-- grain: one row per UTC day, pool, component, currency, payer (team, project, user, job), allocation kind and idle cause
with direct as (
    select * from {{ ref('int_allocations_direct') }}
),

idle as (
    select * from {{ ref('int_allocations_idle') }}
),

daily as (
    select * from {{ ref('int_allocations_daily') }}
),

shared as (
    select * from {{ ref('int_allocations_shared') }}
),

pool_hour_costs as (
    select * from {{ ref('int_pool_hour_costs') }}
),

allocation_policies as (
    select * from {{ ref('int_allocation_policies') }}
),

without_capacity as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        cast(sum(cost) as numeric(38, 9)) as amount
    from pool_hour_costs
    where not has_capacity
    group by usage_date, pool_id, component, currency
),

{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

unioned as (
    select
        usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key,
        'direct' as allocation_kind,
        {{ no_text }} as idle_cause,
        driver,
        quantity,
        'in proportion to use' as reason,
        amount
    from direct
    union all
    select
        usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key,
        'idle' as allocation_kind,
        idle_cause,
        {{ no_text }} as driver,
        {{ as_weight('null') }} as quantity,
        reason,
        amount
    from idle
    union all
    select
        usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key,
        'direct' as allocation_kind,
        {{ no_text }} as idle_cause,
        driver,
        quantity,
        reason,
        amount
    from daily
    union all
    select
        usage_date, pool_id, component, currency, team_id, project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_text }} as driver,
        {{ as_weight('null') }} as quantity,
        reason,
        amount
    from shared
    union all
    select
        usage_date, pool_id, component, currency,
        'unattributed' as team_id,
        {{ no_text }} as project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        'unattributed' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_text }} as driver,
        {{ as_weight('null') }} as quantity,
        'cost without known capacity' as reason,
        amount
    from without_capacity
),

-- Several bill lines of one pool and component can reach the same payer for different reasons (owned, and by use).
final as (
    select
        unioned.usage_date,
        unioned.pool_id,
        unioned.component,
        unioned.currency,
        unioned.team_id,
        unioned.project_id,
        unioned.user_name,
        unioned.job_key,
        unioned.allocation_kind,
        unioned.idle_cause,
        max(unioned.driver) as driver,
        sum(unioned.quantity) as quantity,
        coalesce(max(allocation_policies.method), 'direct') as method,
        min(
            case
                when unioned.team_id = 'unattributed' and unioned.allocation_kind in ('direct', 'idle')
                    then unioned.reason || ', by somebody whom no payer rule knows'
                else unioned.reason
            end
        ) as reason,
        cast(sum(unioned.amount) as numeric(38, 9)) as amount
    from unioned
    left join allocation_policies
        on
            unioned.usage_date = allocation_policies.usage_date
            and unioned.pool_id = allocation_policies.pool_id
            and unioned.component = allocation_policies.component
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
)

select * from final
