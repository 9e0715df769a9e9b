-- grain: one row per UTC day, pool, hourly component, currency, idle cause and payer, where not simply the use of the day pays
-- A ceiling says which share of the pool's cost its users pay as idle at most; the platform pays the rest. What jobs pay by the
-- use of the day, up to no ceiling, lies side by side in int_job_idle_costs.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set pool_cost = ['usage_date', 'pool_id', 'component', 'currency'] %}

with exceeded as (
    select * from {{ ref('int_exceeded_ceilings') }}
),

capped as (
    select
        {{ qualified('uncapped', pool_cost) }},
        uncapped.idle_cause,
        coalesce(payers.team_id, uncapped.team_id) as team_id,
        payers.project_id,
        payers.user_name,
        payers.job_key,
        uncapped.policy_row,
        uncapped.reason,
        uncapped.amount,
        exceeded.ceiling_row,
        exceeded.allowed_cost,
        {{ nano_units('uncapped.amount') }} as weight
    from {{ ref('int_idle_uncapped') }} as uncapped
    inner join exceeded on {{ equal_on('uncapped', 'exceeded', pool_cost) }}
    left join {{ ref('int_job_payers') }} as payers on uncapped.job_number = payers.job_number
    where uncapped.job_number is not null or uncapped.team_id <> 'platform'
),

allowed as (
    {{ split('capped', ['allowed_cost'], 'weight', by=pool_cost, order_by=['idle_cause'] + payer) }}
),

final as (
    select
        {{ qualified('by_rule', pool_cost) }},
        by_rule.idle_cause,
        coalesce(payers.team_id, by_rule.team_id) as team_id,
        payers.project_id,
        payers.user_name,
        payers.job_key,
        by_rule.policy_row,
        by_rule.reason,
        by_rule.amount
    from {{ ref('int_idle_by_rule') }} as by_rule
    left join exceeded on {{ equal_on('by_rule', 'exceeded', pool_cost) }}
    left join {{ ref('int_job_payers') }} as payers on by_rule.job_number = payers.job_number
    where exceeded.pool_id is null or (by_rule.job_number is null and by_rule.team_id = 'platform')
    union all
    select
        {{ pool_cost | join(', ') }},
        idle_cause,
        {{ payer | join(', ') }},
        policy_row,
        reason || ', up to the ceiling of the pool' as reason,
        allowed_cost_part as amount
    from allowed
    union all
    select
        {{ pool_cost | join(', ') }},
        idle_cause,
        'platform' as team_id,
        cast(null as {{ dbt.type_string() }}) as project_id,
        cast(null as {{ dbt.type_string() }}) as user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        ceiling_row as policy_row,
        'above what users pay at most of this pool' as reason,
        cast(sum(amount - allowed_cost_part) as numeric(38, 9)) as amount
    from allowed
    group by {{ pool_cost | join(', ') }}, idle_cause, ceiling_row
)

select * from final
