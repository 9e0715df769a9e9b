{{ config(meta={"dagster": {"ref": {"name": "fct_cost_allocations"}}}) }}
-- law 1, conservation inside a pool: the direct cost of jobs is the used cost of its hours, and the idle cost charged
-- for a cause is what that cause cost; only hours without known capacity stay unattributed
{%- set causes = ['down', 'reserved', 'stranded', 'unscheduled'] %}

with pool_hours as (
    select * from {{ ref('fct_pool_hours') }}
    where {{ in_window('usage_date') }}
),

hourly_components as (
    select component from {{ ref('dim_components') }}
    where cost_grain = 'hour'
),

parts as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        'direct' as part,
        used_cost as hours_cost,
        cast(0 as numeric(38, 9)) as allocated_cost
    from pool_hours
    {%- for cause in causes %}
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        'idle {{ cause }}' as part,
        {{ cause }}_cost as hours_cost,
        cast(0 as numeric(38, 9)) as allocated_cost
    from pool_hours
    {%- endfor %}
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        'unattributed' as part,
        cost - used_cost - down_cost - reserved_cost - stranded_cost - unscheduled_cost as hours_cost,
        cast(0 as numeric(38, 9)) as allocated_cost
    from pool_hours
    union all
    select
        allocations.usage_date,
        allocations.pool_id,
        allocations.component,
        allocations.currency,
        case
            when allocations.allocation_kind = 'idle'
                then {{ dbt.concat(["'idle '", "coalesce(allocations.idle_cause, 'without cause')"]) }}
            else allocations.allocation_kind
        end as part,
        cast(0 as numeric(38, 9)) as hours_cost,
        allocations.amount as allocated_cost
    from {{ ref('fct_cost_allocations') }} as allocations
    inner join hourly_components on allocations.component = hourly_components.component
    where {{ in_window('allocations.usage_date') }}
)

select
    usage_date,
    pool_id,
    component,
    currency,
    part,
    sum(hours_cost) as cost_of_hours,
    sum(allocated_cost) as cost_of_allocations,
    sum(hours_cost) - sum(allocated_cost) as difference
from parts
group by usage_date, pool_id, component, currency, part
having sum(hours_cost) <> sum(allocated_cost)
