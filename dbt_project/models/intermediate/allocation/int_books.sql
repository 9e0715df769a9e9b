-- grain: one row per UTC day, pool, component, currency, payer, allocation kind, idle cause, policy row, counterparty and (burst) reason
-- The books before adjustments, which read these rows and do not see each other.
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}
{%- set cost = 'usage_date, pool_id, component, currency' %}
{%- set payer = 'team_id, project_id, user_name, job_key' %}
{%- set no_driver = no_text ~ ' as driver, ' ~ as_weight('null') ~ ' as quantity' %}

with allocation_policies as (
    select * from {{ ref('int_allocation_policies') }}
),

direct as (
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

burst as (
    select * from {{ ref('int_burst_hours') }}
),

lender_credits as (
    select * from {{ ref('int_lender_credits') }}
),

outcome_credits as (
    select * from {{ ref('int_outcome_credits') }}
),

without_capacity as (
    select * from {{ ref('int_pool_hour_costs') }}
    where not has_capacity
),

unioned as (
    select
        {{ cost }}, {{ payer }},
        'direct' as allocation_kind,
        {{ no_text }} as idle_cause,
        driver,
        quantity,
        {{ no_text }} as policy_row,
        {{ no_text }} as counterparty_team_id,
        {{ no_text }} as reason,
        amount
    from direct
    union all
    select
        {{ cost }}, {{ payer }},
        'direct' as allocation_kind,
        {{ no_text }} as idle_cause,
        driver,
        quantity,
        {{ no_text }} as policy_row,
        {{ no_text }} as counterparty_team_id,
        reason,
        amount
    from daily
    union all
    select
        {{ cost }}, {{ payer }},
        'idle' as allocation_kind,
        idle_cause,
        {{ no_driver }},
        policy_row,
        {{ no_text }} as counterparty_team_id,
        reason,
        amount
    from idle
    union all
    select
        {{ cost }}, team_id, project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_driver }},
        {{ no_text }} as policy_row,
        {{ no_text }} as counterparty_team_id,
        reason,
        amount
    from shared
    union all
    select
        {{ cost }},
        'unattributed' as team_id,
        {{ no_text }} as project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        'unattributed' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_driver }},
        {{ no_text }} as policy_row,
        {{ no_text }} as counterparty_team_id,
        'cost without known capacity' as reason,
        cost as amount
    from without_capacity
    union all
    select
        {{ cost }}, {{ payer }},
        'burst' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_driver }},
        policy_row,
        {{ no_text }} as counterparty_team_id,
        'use above entitlement pays for burst capacity first' as reason,
        amount
    from burst
    union all
    select
        {{ cost }}, team_id,
        {{ no_text }} as project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        'burst' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_driver }},
        policy_row,
        {{ no_text }} as counterparty_team_id,
        reason,
        amount
    from lender_credits
    union all
    select
        {{ cost }}, {{ payer }},
        'outcome_credit' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_driver }},
        policy_row,
        'platform' as counterparty_team_id,
        reason,
        -amount as amount
    from outcome_credits
    union all
    select
        {{ cost }},
        'platform' as team_id,
        {{ no_text }} as project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        'outcome_credit' as allocation_kind,
        {{ no_text }} as idle_cause,
        {{ no_driver }},
        policy_row,
        team_id as counterparty_team_id,
        reason,
        amount
    from outcome_credits
),

explained as (
    select
        unioned.*,
        allocation_policies.policy_row as allocation_policy_row,
        coalesce(allocation_policies.method, 'direct') as method,
        coalesce(
            unioned.reason,
            case allocation_policies.method
                when 'time' then 'by time present'
                when 'complexity' then 'in proportion to use times the weight of the workload'
                else 'in proportion to use'
            end
        ) as explanation
    from unioned
    left join allocation_policies
        on
            unioned.usage_date = allocation_policies.usage_date
            and unioned.pool_id = allocation_policies.pool_id
            and unioned.component = allocation_policies.component
),

-- Several bill lines of one pool and component can reach the same payer for different reasons (owned, and by use).
final as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        team_id,
        project_id,
        user_name,
        job_key,
        allocation_kind,
        idle_cause,
        coalesce(policy_row, allocation_policy_row) as policy_row,
        counterparty_team_id,
        max(driver) as driver,
        sum(quantity) as quantity,
        max(method) as method,
        min(
            case
                when team_id = 'unattributed' and allocation_kind in ('direct', 'idle')
                    then explanation || ', by somebody whom no payer rule knows'
                else explanation
            end
        ) as reason,
        cast(sum(amount) as numeric(38, 9)) as amount
    from explained
    group by
        usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, allocation_kind, idle_cause,
        coalesce(policy_row, allocation_policy_row), counterparty_team_id,
        -- A team can lend in one hour and borrow in another: what it gets and what it pays stay apart.
        case when allocation_kind = 'burst' then explanation end
)

select * from final
