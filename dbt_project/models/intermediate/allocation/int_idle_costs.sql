-- grain: one row per pool, hourly component, currency, hour and idle cause that costs something, with the rule that pays it
with pool_hour_costs as (
    select * from {{ ref('int_pool_hour_costs') }}
),

idle_policies as (
    select * from {{ ref('int_idle_policies') }}
),

components as (
    select * from {{ ref('stg_reference__components') }}
),

users_of_day as (
    select distinct
        usage_date,
        pool_id,
        driver
    from {{ ref('int_drivers_daily') }}
),

causes as (
    {%- for cause in ['down', 'reserved', 'stranded', 'unscheduled'] %}
    select
        usage_date,
        hour_ms,
        pool_id,
        component,
        currency,
        '{{ cause }}' as idle_cause,
        {{ cause }}_cost as idle_cost,
        used > 0 as is_used_in_hour
    from pool_hour_costs
    where {{ cause }}_cost <> 0
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

final as (
    select
        causes.usage_date,
        causes.hour_ms,
        causes.pool_id,
        causes.component,
        causes.currency,
        causes.idle_cause,
        causes.idle_cost,
        components.driver,
        idle_policies.policy_row,
        case
            when idle_policies.policy = 'platform' then 'platform'
            when users_of_day.pool_id is null then 'platform'
            when idle_policies.idle_window = 'hour' and causes.is_used_in_hour then 'users of the hour'
            when idle_policies.idle_window = 'hour' then 'users of the day, hour by hour'
            else 'users of the day'
        end as paid_by,
        case
            when idle_policies.policy_row is null then 'no idle policy names this pool and cause'
            when idle_policies.policy = 'platform' then 'the platform pays this cause'
            when users_of_day.pool_id is null then 'nobody used the pool on this day'
            else 'in proportion to use'
        end as reason
    from causes
    inner join components on causes.component = components.component
    left join idle_policies
        on
            causes.usage_date = idle_policies.usage_date
            and causes.pool_id = idle_policies.pool_id
            and causes.idle_cause = idle_policies.idle_cause
    left join users_of_day
        on
            causes.usage_date = users_of_day.usage_date
            and causes.pool_id = users_of_day.pool_id
            and components.driver = users_of_day.driver
)

select * from final
