-- grain: one row per UTC day, overhead base, pool (none: any), team and project: the weight by which overhead is shared
-- One branch per base. All but `fixed` are the same for every pool.
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with direct_costs as (
    select
        costs.usage_date,
        costs.currency,
        payers.team_id,
        payers.project_id,
        cast(
            {%- for component in ['gpu', 'cpu', 'memory', 'energy'] %}
            coalesce(costs.{{ component }}_cost, 0){{ ' +' if not loop.last }}
            {%- endfor %} as numeric(38, 9)
        ) as amount
    from {{ ref('int_job_pool_hour_costs') }} as costs
    inner join {{ ref('int_job_payers') }} as payers on costs.job_number = payers.job_number
    union all
    select
        usage_date,
        currency,
        team_id,
        project_id,
        amount
    from {{ ref('int_allocations_daily') }}
),

gpu_use as (
    select
        job_days.usage_date,
        payers.team_id,
        payers.project_id,
        job_days.gpu_held
    from {{ ref('int_job_pool_days') }} as job_days
    inner join {{ ref('int_job_payers') }} as payers on job_days.job_number = payers.job_number
    where job_days.gpu_held > 0
),

teams as (
    select * from {{ ref('int_team_days') }}
    where not is_built_in and headcount > 0
),

shares as (
    select * from {{ ref('stg_policy__overhead_shares') }}
),

fixed_pools as (
    select distinct
        usage_date,
        pool_id
    from {{ ref('int_overhead_costs') }}
    where overhead_base = 'fixed'
),

by_currency as (
    select
        usage_date,
        currency,
        team_id,
        project_id,
        cast(sum(amount) as numeric(38, 9)) as amount
    from direct_costs
    where team_id <> 'platform'
    group by usage_date, currency, team_id, project_id
),

rated as (
    {{ in_reporting_currency('by_currency', ['usage_date', 'team_id', 'project_id']) }}
),

-- Shares of the pool itself count before those of any pool.
fixed as (
    select
        fixed_pools.usage_date,
        fixed_pools.pool_id,
        shares.team_id,
        {{ nano_units('shares.share') }} as weight
    from fixed_pools
    inner join shares
        on shares.pool_id in (fixed_pools.pool_id, '*') and {{ valid_on('shares', 'fixed_pools.usage_date') }}
    qualify
        rank() over (
            partition by fixed_pools.usage_date, fixed_pools.pool_id
            order by case when shares.pool_id = '*' then 1 else 0 end
        ) = 1
),

final as (
    select
        usage_date,
        'direct_cost' as overhead_base,
        {{ no_text }} as pool_id,
        team_id,
        project_id,
        {{ nano_units('greatest(sum(amount), 0)') }} as weight
    from rated
    group by usage_date, team_id, project_id
    union all
    select
        usage_date,
        'gpu_hours' as overhead_base,
        {{ no_text }} as pool_id,
        team_id,
        project_id,
        sum(gpu_held) as weight
    from gpu_use
    group by usage_date, team_id, project_id
    union all
    select
        usage_date,
        'headcount' as overhead_base,
        {{ no_text }} as pool_id,
        team_id,
        {{ no_text }} as project_id,
        {{ as_weight('headcount') }} as weight
    from teams
    union all
    select
        usage_date,
        'fixed' as overhead_base,
        pool_id,
        team_id,
        {{ no_text }} as project_id,
        weight
    from fixed
)

select * from final
