-- grain: one row per UTC day, pool, component, currency, payer (team, project, user, job), allocation kind and idle cause
-- What is not in fct_job_costs and fct_job_idle_costs: costs of teams, idle cost by other rules, transfers. These have a row per
-- policy row, counterparty and reason, so that both sides of a pair can be seen.
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with allocations as (
    select * from {{ ref('int_other_books') }}
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        team_id,
        project_id,
        user_name,
        job_key,
        'adjustment' as allocation_kind,
        {{ no_text }} as idle_cause,
        policy_row,
        counterparty_team_id,
        {{ no_text }} as driver,
        {{ as_weight('null') }} as quantity,
        {{ no_text }} as method,
        reason,
        amount
    from {{ ref('int_adjustments') }}
),

billed as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        min(cost_status) as cost_status
    from (
        -- A row is as final as the least final line behind it.
        select
            usage_date,
            pool_id,
            component,
            currency,
            case when cost_status = 'final' then '2 final' else '1 provisional' end as cost_status
        from {{ ref('fct_billed_costs') }}
        where {{ in_window('usage_date') }}
    ) as statuses
    group by usage_date, pool_id, component, currency
),

days as (
    select * from {{ ref('int_days') }}
),

-- Where no power was measured, energy follows GPU time, and that is no number of kilowatt-hours.
metered_pools as (
    select
        usage_date,
        pool_id
    from {{ ref('int_energy_rates') }}
    where is_measured
)

select
    allocations.usage_date,
    allocations.pool_id,
    allocations.component,
    allocations.currency,
    allocations.team_id,
    allocations.project_id,
    allocations.user_name,
    allocations.job_key,
    allocations.allocation_kind,
    allocations.idle_cause,
    allocations.amount,
    allocations.driver,
    case allocations.driver
        when 'gpu_seconds' then {{ quotient('allocations.quantity', '25200000') }}
        when 'cpu_core_seconds' then {{ quotient('allocations.quantity', '1000000') }}
        when 'memory_gib_seconds' then {{ quotient('allocations.quantity', '1024000') }}
        when 'gib_hours_stored' then {{ quotient('allocations.quantity', '3686400000') }}
        when 'seat_hours' then {{ quotient('allocations.quantity', '3600000') }}
        when 'kwh' then case when metered_pools.pool_id is not null then {{ quotient('allocations.quantity', '3600000000000') }} end
        when 'bytes_out' then cast(allocations.quantity as numeric(38, 9))
    end as driver_quantity,
    allocations.method,
    allocations.reason,
    allocations.policy_row,
    allocations.counterparty_team_id,
    days.policy_hash,
    -- What no bill stands behind was decided and will not change with a bill.
    coalesce(substr(billed.cost_status, 3), 'final') as cost_status
from allocations
inner join days on allocations.usage_date = days.usage_date
left join billed
    on
        allocations.usage_date = billed.usage_date
        and allocations.pool_id = billed.pool_id
        and allocations.component = billed.component
        and allocations.currency = billed.currency
left join metered_pools on allocations.usage_date = metered_pools.usage_date and allocations.pool_id = metered_pools.pool_id
