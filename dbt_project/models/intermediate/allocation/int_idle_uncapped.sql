-- grain: one row per UTC day, pool, hourly component, currency, idle cause and payer, before the ceiling
-- Rules whose weights are the day's split the day's sum once; the others split each hour.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set amount_key = ['usage_date', 'paid_hour_ms', 'pool_id', 'component', 'currency', 'idle_cause'] %}
{%- set weight_key = ['usage_date', 'pool_id', 'component', 'idle_rule'] %}

with costs as (
    select
        usage_date,
        case when is_paid_by_hour then hour_ms end as paid_hour_ms,
        pool_id,
        component,
        currency,
        idle_cause,
        idle_rule,
        policy_row,
        cast(sum(idle_cost) as numeric(38, 9)) as idle_cost
    from {{ ref('int_idle_costs') }}
    group by 1, 2, 3, 4, 5, 6, 7, 8
),

weights as (
    select * from {{ ref('int_idle_weights') }}
),

steps as (
    select distinct
        usage_date,
        hour_ms,
        pool_id,
        component,
        idle_rule,
        step,
        step_weight
    from weights
),

-- Whose weights count: those of the hour if there are any, else those of the day, else nobody's.
found as (
    select
        costs.*,
        max(case when steps.hour_ms = costs.paid_hour_ms then steps.hour_ms end) as weight_hour_ms,
        count(steps.step) > 0 as has_payers
    from costs
    left join steps
        on
            {{ equal_on('costs', 'steps', weight_key) }}
            and (costs.paid_hour_ms = steps.hour_ms or steps.hour_ms is null)
    group by {{ qualified('costs', amount_key + ['idle_rule', 'policy_row', 'idle_cost']) }}
),

stepped as (
    select
        found.*,
        steps.step,
        steps.step_weight
    from found
    inner join steps
        on
            {{ equal_on('found', 'steps', weight_key) }}
            and coalesce(found.weight_hour_ms, -1) = coalesce(steps.hour_ms, -1)
),

step_costs as (
    {{ split('stepped', ['idle_cost'], 'step_weight', by=amount_key, order_by=['step']) }}
),

weighted as (
    select
        {{ qualified('step_costs', amount_key) }},
        step_costs.idle_rule,
        step_costs.policy_row,
        step_costs.step,
        step_costs.idle_cost_part as step_cost,
        {{ qualified('weights', payer) }},
        weights.weight,
        case
            when step_costs.policy_row is null then 'no idle policy names this pool and cause'
            else weights.reason
        end as reason
    from step_costs
    inner join weights
        on
            {{ equal_on('step_costs', 'weights', weight_key) }}
            and step_costs.step = weights.step
            and coalesce(step_costs.weight_hour_ms, -1) = coalesce(weights.hour_ms, -1)
),

parts as (
    {{ split('weighted', ['step_cost'], 'weight', by=amount_key + ['step'], order_by=payer) }}
),

final as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        {{ payer | join(', ') }},
        policy_row,
        reason,
        cast(sum(step_cost_part) as numeric(38, 9)) as amount
    from parts
    group by usage_date, pool_id, component, currency, idle_cause, {{ payer | join(', ') }}, policy_row, reason
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        'platform' as team_id,
        cast(null as {{ dbt.type_string() }}) as project_id,
        cast(null as {{ dbt.type_string() }}) as user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        policy_row,
        case idle_rule
            when 'platform by day' then 'the platform pays this cause'
            else 'nobody on this day whom the rule could charge'
        end as reason,
        cast(sum(idle_cost) as numeric(38, 9)) as amount
    from found
    where not has_payers
    group by usage_date, pool_id, component, currency, idle_cause, policy_row, idle_rule
)

select * from final
