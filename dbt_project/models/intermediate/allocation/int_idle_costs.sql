-- grain: one row per pool, hourly component, currency, hour and idle cause that costs something, with the rule that pays it
-- The rule says whose weights count (int_idle_weights), and whether the hour or the day is shared out.
with pool_hour_costs as (
    select * from {{ ref('int_pool_hour_costs') }}
),

idle_policies as (
    select * from {{ ref('int_idle_policies') }}
),

components as (
    select * from {{ ref('int_components') }}
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
        {{ cause }}_cost as idle_cost
    from pool_hour_costs
    where {{ cause }}_cost <> 0
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

ruled as (
    select
        causes.*,
        components.driver,
        idle_policies.policy_row,
        case
            when idle_policies.policy is null then 'proportional by day'
            when idle_policies.policy = 'proportional' then 'proportional by ' || idle_policies.idle_window
            when idle_policies.policy = 'owner' and causes.idle_cause = 'reserved' then 'owner by hour'
            else idle_policies.policy || ' by day'
        end as idle_rule
    from causes
    inner join components on causes.component = components.component
    left join idle_policies
        on
            causes.usage_date = idle_policies.usage_date
            and causes.pool_id = idle_policies.pool_id
            and causes.idle_cause = idle_policies.idle_cause
)

select
    ruled.*,
    idle_rule like '% by hour' as is_paid_by_hour,
    idle_rule = 'proportional by day' and component <> 'energy' as is_paid_by_use_of_day
from ruled
