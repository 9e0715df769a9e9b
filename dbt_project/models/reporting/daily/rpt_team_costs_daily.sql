-- grain: one row per UTC day, team, project, pool, component and currency
{%- set kinds = ['direct', 'idle', 'shared', 'burst', 'outcome_credit', 'adjustment', 'unattributed'] %}
{%- set causes = ['down', 'reserved', 'stranded', 'unscheduled'] %}

with allocations as (
    select * from {{ ref('fct_cost_allocations') }}
    where {{ in_window('usage_date') }}
),

usage_hours as (
    select * from {{ ref('fct_job_usage_hourly') }}
    where {{ in_window('usage_date') }}
),

teams as (
    select * from {{ ref('fct_team_days') }}
    where {{ in_window('usage_date') }}
),

projects as (
    select * from {{ ref('fct_project_days') }}
    where {{ in_window('usage_date') }}
),

pools as (
    select * from {{ ref('fct_pool_days') }}
    where {{ in_window('usage_date') }}
),

costs as (
    select
        usage_date,
        team_id,
        project_id,
        pool_id,
        component,
        currency,
        {%- for kind in kinds %}
        sum(case when allocation_kind = '{{ kind }}' then amount end) as {{ kind }}_cost,
        {%- endfor %}
        {%- for cause in causes %}
        sum(case when idle_cause = '{{ cause }}' then amount end) as idle_{{ cause }}_cost,
        {%- endfor %}
        cast(sum(amount) as numeric(38, 9)) as total_cost,
        -- `final` only if every row is.
        min(cost_status) = 'final' and max(cost_status) = 'final' as is_final
    from allocations
    group by usage_date, team_id, project_id, pool_id, component, currency
),

-- Hours have no currency: where a pool is billed in several, they stand on the first one's row, so that sums are right.
numbered as (
    select
        costs.*,
        row_number() over (
            partition by usage_date, team_id, project_id, pool_id, component
            order by currency
        ) as currency_number
    from costs
),

gpu_use as (
    select
        usage_date,
        team_id,
        project_id,
        pool_id,
        sum(gpu_seconds) as gpu_seconds,
        sum(case when busy_share is not null then gpu_seconds else 0 end) as sampled_gpu_seconds,
        sum({{ times_rate('gpu_seconds', 'busy_share') }}) as busy_gpu_seconds
    from usage_hours
    group by usage_date, team_id, project_id, pool_id
),

final as (
    select
        costs.usage_date,
        {{ month_of('costs.usage_date') }} as month_date,
        costs.team_id,
        coalesce(teams.team_name, costs.team_id) as team_name,
        teams.team_path,
        teams.cost_centre,
        coalesce(teams.billing_mode, 'showback') as billing_mode,
        costs.project_id,
        coalesce(projects.project_name, costs.project_id) as project_name,
        costs.pool_id,
        coalesce(pools.pool_name, costs.pool_id) as pool_name,
        pools.cluster_id,
        pools.gpu_model,
        pools.purchase_class,
        costs.component,
        costs.currency,
        {%- for kind in kinds %}
        cast(coalesce(costs.{{ kind }}_cost, 0) as numeric(38, 9)) as {{ kind }}_cost,
        {%- endfor %}
        {%- for cause in causes %}
        cast(coalesce(costs.idle_{{ cause }}_cost, 0) as numeric(38, 9)) as idle_{{ cause }}_cost,
        {%- endfor %}
        costs.total_cost,
        {{ seconds_to_hours('gpu_use.gpu_seconds') }} as gpu_hours,
        {{ seconds_to_hours('gpu_use.sampled_gpu_seconds') }} as sampled_gpu_hours,
        {{ seconds_to_hours('gpu_use.busy_gpu_seconds') }} as busy_gpu_hours,
        case when costs.is_final then 'final' else 'provisional' end as cost_status
    from numbered as costs
    left join teams on costs.usage_date = teams.usage_date and costs.team_id = teams.team_id
    left join projects on costs.usage_date = projects.usage_date and costs.project_id = projects.project_id
    left join pools on costs.usage_date = pools.usage_date and costs.pool_id = pools.pool_id
    left join gpu_use
        on
            costs.component = 'gpu'
            and costs.currency_number = 1
            and costs.usage_date = gpu_use.usage_date
            and costs.team_id = gpu_use.team_id
            and coalesce(costs.project_id, '') = coalesce(gpu_use.project_id, '')
            and costs.pool_id = gpu_use.pool_id
)

select * from final
