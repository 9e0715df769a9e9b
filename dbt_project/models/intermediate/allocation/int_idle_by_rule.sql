-- grain: one row per UTC day, pool, hourly component, currency, idle cause and payer, where not the use of the day pays
-- Rules whose weights are the day's split the day's sum once; the others split each hour. Payers are job runs by their number,
-- or teams; the weights come with their running and total sums. What any rule finds nobody for is the platform's.
{%- set payer = ['team_id', 'job_number'] %}
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
        is_paid_by_use_of_day,
        policy_row,
        cast(sum(idle_cost) as numeric(38, 9)) as idle_cost
    from {{ ref('int_idle_costs') }}
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9
),

users_of_days as (
    {%- for component in ['gpu', 'cpu', 'memory'] %}
    select distinct
        usage_date,
        pool_id,
        '{{ component }}' as component
    from {{ ref('int_job_pool_days') }}
    where {{ component }}_total_weight > 0
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
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
    from {{ ref('int_idle_weights') }}
),

-- Whose weights count: those of the hour if there are any, else those of the day, else nobody's.
found as (
    select
        costs.*,
        max(case when steps.hour_ms = costs.paid_hour_ms then steps.hour_ms end) as weight_hour_ms,
        count(steps.step) + count(users_of_days.pool_id) > 0 as has_payers
    from costs
    left join steps
        on
            {{ equal_on('costs', 'steps', weight_key) }}
            and (costs.paid_hour_ms = steps.hour_ms or steps.hour_ms is null)
    left join users_of_days
        on {{ equal_on('costs', 'users_of_days', ['usage_date', 'pool_id', 'component']) }} and costs.is_paid_by_use_of_day
    group by {{ qualified('costs', amount_key + ['idle_rule', 'is_paid_by_use_of_day', 'policy_row', 'idle_cost']) }}
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

{%- set weighted %}
    select
        {{ qualified('step_costs', amount_key) }},
        step_costs.policy_row,
        step_costs.idle_cost_part as step_cost,
        {{ qualified('weights', payer) }},
        weights.weight,
        weights.running_weight,
        weights.total_weight,
        case
            when step_costs.policy_row is null then 'no idle policy names this pool and cause'
            else weights.reason
        end as reason
    from step_costs
    inner join {{ ref('int_idle_weights') }} as weights
        on
            {{ equal_on('step_costs', 'weights', weight_key) }}
            and step_costs.step = weights.step
            and coalesce(step_costs.weight_hour_ms, -1) = coalesce(weights.hour_ms, -1)
{%- endset %}

parts as (
    {{ parts_of_each(weighted, [
        dict(part='amount', amount='step_cost', weight='weight', running='running_weight', total='total_weight')
    ]) }}
),

-- A job has one part of the day's cost; hours and steps are added up.
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
        amount
    from parts
    where paid_hour_ms is null and job_number is not null
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        {{ payer | join(', ') }},
        policy_row,
        reason,
        cast(sum(amount) as numeric(38, 9)) as amount
    from parts
    where paid_hour_ms is not null or job_number is null
    group by usage_date, pool_id, component, currency, idle_cause, {{ payer | join(', ') }}, policy_row, reason
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        idle_cause,
        'platform' as team_id,
        cast(null as int64) as job_number,
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
