-- grain: one row per UTC day, pool, hourly component, currency, idle cause and payer
-- A ceiling says which share of the pool's cost its users pay as idle at most; the platform pays the rest.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set pool_cost = ['usage_date', 'pool_id', 'component', 'currency'] %}

with ceilings as (
    select * from {{ ref('int_allocation_policies') }}
    where idle_ceiling is not null
),

costs as (
    select
        {{ pool_cost | join(', ') }},
        cast(sum(cost) as numeric(38, 9)) as cost
    from {{ ref('int_pool_hour_costs') }}
    group by {{ pool_cost | join(', ') }}
),

team_sums as (
    select
        {{ pool_cost | join(', ') }},
        cast(sum(amount) as numeric(38, 9)) as idle_cost
    from {{ ref('int_idle_uncapped') }}
    -- Job runs have numbers, and the platform has none.
    where job_number is not null or team_id <> 'platform'
    group by {{ pool_cost | join(', ') }}
),

exceeded as (
    select
        {{ qualified('costs', pool_cost) }},
        ceilings.policy_row as ceiling_row,
        {{ times_rate('costs.cost', 'ceilings.idle_ceiling') }} as allowed_cost
    from costs
    inner join ceilings
        on
            costs.usage_date = ceilings.usage_date
            and costs.pool_id = ceilings.pool_id
            and costs.component = ceilings.component
    inner join team_sums on {{ equal_on('costs', 'team_sums', pool_cost) }}
    where
        costs.cost > 0
        and {{ nano_units('team_sums.idle_cost') }} * 1000000000
        > {{ nano_units('costs.cost') }} * {{ nano_units('ceilings.idle_ceiling') }}
),

payers as (
    select * from {{ ref('int_job_payers') }}
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
    left join payers on uncapped.job_number = payers.job_number
    where uncapped.job_number is not null or uncapped.team_id <> 'platform'
),

allowed as (
    {{ split('capped', ['allowed_cost'], 'weight', by=pool_cost, order_by=['idle_cause'] + payer) }}
),

-- Jobs and teams apart: joined to the payers together, DuckDB would take the rows of all jobs for the smaller side.
final as (
    select
        {{ qualified('uncapped', pool_cost) }},
        uncapped.idle_cause,
        {{ qualified('payers', payer) }},
        uncapped.policy_row,
        uncapped.reason,
        uncapped.amount
    from {{ ref('int_idle_uncapped') }} as uncapped
    inner join payers on uncapped.job_number = payers.job_number
    left join exceeded on {{ equal_on('uncapped', 'exceeded', pool_cost) }}
    where exceeded.pool_id is null
    union all
    select
        {{ qualified('uncapped', pool_cost) }},
        uncapped.idle_cause,
        uncapped.team_id,
        cast(null as {{ dbt.type_string() }}) as project_id,
        cast(null as {{ dbt.type_string() }}) as user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        uncapped.policy_row,
        uncapped.reason,
        uncapped.amount
    from {{ ref('int_idle_uncapped') }} as uncapped
    left join exceeded on {{ equal_on('uncapped', 'exceeded', pool_cost) }}
    where uncapped.job_number is null and (exceeded.pool_id is null or uncapped.team_id = 'platform')
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
