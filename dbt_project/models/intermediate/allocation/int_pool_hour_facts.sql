-- grain: one row per pool, hourly component, currency and hour, with or without cost
-- Capacity that nothing was billed for is shown too, at no cost in the reporting currency.
{%- set uses = ['used', 'down', 'reserved', 'stranded', 'unscheduled'] %}

with pool_hour_costs as (
    select * from {{ ref('int_pool_hour_costs') }}
),

pool_hours as (
    select * from {{ ref('int_pool_hours') }}
),

allocation_policies as (
    select * from {{ ref('int_allocation_policies') }}
),

idle_policies as (
    select
        usage_date,
        pool_id,
        string_agg(policy_row, ', ' order by idle_cause) as idle_policy_rows
    from {{ ref('int_idle_policies') }}
    group by usage_date, pool_id
),

without_cost as (
    select
        pool_hours.usage_date,
        pool_hours.hour_ms,
        pool_hours.pool_id,
        pool_hours.component,
        '{{ var("reporting_currency") }}' as currency,
        cast(0 as numeric(38, 9)) as cost,
        pool_hours.is_measured,
        {{ qualified('pool_hours', uses) }},
        {%- for use in uses %}
        cast(0 as numeric(38, 9)) as {{ use }}_cost{% if not loop.last %},{% endif %}
        {%- endfor %}
    from pool_hours
    left join pool_hour_costs
        on
            pool_hours.usage_date = pool_hour_costs.usage_date
            and pool_hours.hour_ms = pool_hour_costs.hour_ms
            and pool_hours.pool_id = pool_hour_costs.pool_id
            and pool_hours.component = pool_hour_costs.component
    where pool_hour_costs.pool_id is null and pool_hours.component <> 'energy'
),

all_hours as (
    select * from without_cost
    union all
    select
        usage_date,
        hour_ms,
        pool_id,
        component,
        currency,
        cost,
        is_measured,
        {{ qualified('pool_hour_costs', uses) }},
        {{ qualified('pool_hour_costs', uses, '_cost') }}
    from pool_hour_costs
),

final as (
    select
        all_hours.*,
        coalesce(allocation_policies.method, 'direct') as method,
        allocation_policies.policy_row as allocation_policy_row,
        idle_policies.idle_policy_rows
    from all_hours
    left join allocation_policies
        on
            all_hours.usage_date = allocation_policies.usage_date
            and all_hours.pool_id = allocation_policies.pool_id
            and all_hours.component = allocation_policies.component
    left join idle_policies
        on all_hours.usage_date = idle_policies.usage_date and all_hours.pool_id = idle_policies.pool_id
)

select * from final
