-- grain: one row per UTC day, job run, pool and currency
{%- set components = ['gpu', 'cpu', 'memory', 'energy'] %}
{%- set other_kinds = ['idle', 'burst', 'outcome_credit', 'adjustment'] %}
{%- set costs_of_a_kind = components + ['other_direct'] + other_kinds %}
{%- set job_pool = ['usage_date', 'job_key', 'pool_id', 'currency'] %}
{#- What each fact tells of a job's costs: the columns that it fills. -#}
{%- set is_direct = "allocation_kind = 'direct' and component" %}
{%- set of_other_costs = {'other_direct': 'case when ' ~ is_direct ~ " not in ('" ~ components | join("', '") ~ "') then amount end"} %}
{%- for component in components %}
{%- do of_other_costs.update({component: 'case when ' ~ is_direct ~ " = '" ~ component ~ "' then amount end"}) %}
{%- endfor %}
{%- for kind in other_kinds %}
{%- do of_other_costs.update({kind: "case when allocation_kind = '" ~ kind ~ "' then amount end"}) %}
{%- endfor %}
{%- set facts = {
    'fct_job_costs': {'gpu': 'gpu_cost', 'cpu': 'cpu_cost', 'memory': 'memory_cost', 'energy': 'energy_cost'},
    'fct_job_idle_costs': {'idle': 'coalesce(gpu_cost, 0) + coalesce(cpu_cost, 0) + coalesce(memory_cost, 0)'},
    'fct_other_costs': of_other_costs,
} %}

with usage_hours as (
    select * from {{ ref('fct_job_usage_hourly') }}
    where {{ in_window('usage_date') }}
),

job_days as (
    select * from {{ ref('fct_job_days') }}
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

parts as (
    {%- for fact, said in facts.items() %}
    select
        {%- for cost in costs_of_a_kind %}
        {{ said[cost] or 'cast(null as numeric(38, 9))' }} as {{ cost }}_part,
        {%- endfor %}
        {{ job_pool | join(', ') }}
    from {{ ref(fact) }}
    where {{ in_window('usage_date') }} and job_key is not null
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

costs as (
    select
        {%- for cost in costs_of_a_kind %}
        coalesce(sum({{ cost }}_part), 0) as {{ cost }}_cost,
        {%- endfor %}
        {{ job_pool | join(', ') }}
    from parts
    group by {{ job_pool | join(', ') }}
),

used as (
    select
        usage_date,
        job_key,
        pool_id,
        sum(gpu_seconds) as gpu_seconds,
        sum(cpu_core_seconds) as cpu_core_seconds,
        sum(memory_gib_seconds) as memory_gib_seconds,
        sum(energy_kwh) as energy_kwh,
        sum(case when busy_share is not null then gpu_seconds else 0 end) as sampled_gpu_seconds,
        sum({{ times_rate('gpu_seconds', 'busy_share') }}) as busy_gpu_seconds
    from usage_hours
    group by usage_date, job_key, pool_id
),

-- Quantities have no currency: where a pool is billed in several, they stand on the first one's row, so that sums are
-- right.
several_currencies as (
    select
        usage_date,
        pool_id
    from {{ ref('rpt_team_costs_daily') }}
    where {{ in_window('usage_date') }}
    group by usage_date, pool_id
    having min(currency) < max(currency)
),

first_currencies as (
    select
        allocations.usage_date,
        allocations.job_key,
        allocations.pool_id,
        min(allocations.currency) as currency
    from {{ ref('fct_cost_allocations') }} as allocations
    inner join several_currencies
        on allocations.usage_date = several_currencies.usage_date and allocations.pool_id = several_currencies.pool_id
    where {{ in_window('allocations.usage_date') }} and allocations.job_key is not null
    group by allocations.usage_date, allocations.job_key, allocations.pool_id
),

weights as (
    select
        used.*,
        {{ nano_units('sampled_gpu_seconds') }} as sampled_weight,
        {{ nano_units('coalesce(busy_gpu_seconds, 0)') }} as busy_weight
    from used
),

final as (
    select
        costs.usage_date,
        {{ month_of('costs.usage_date') }} as month_date,
        costs.job_key,
        job_days.job_id,
        job_days.job_name,
        job_days.cluster_id,
        job_days.workload_class,
        job_days.state,
        job_days.team_id,
        coalesce(teams.team_name, job_days.team_id) as team_name,
        teams.cost_centre,
        job_days.project_id,
        coalesce(projects.project_name, job_days.project_id) as project_name,
        job_days.user_name,
        costs.pool_id,
        coalesce(pools.pool_name, costs.pool_id) as pool_name,
        pools.gpu_model,
        costs.currency,
        {%- for cost in costs_of_a_kind %}
        cast(costs.{{ cost }}_cost as numeric(38, 9)) as {{ cost }}_cost,
        {%- endfor %}
        cast({{ qualified('costs', costs_of_a_kind, '_cost') | replace(', ', ' + ') }} as numeric(38, 9)) as total_cost,
        {{ share('costs.gpu_cost', 'weights.sampled_weight - weights.busy_weight', 'weights.sampled_weight') }}
            as held_idle_cost,
        case
            when coalesce(first_currencies.currency, costs.currency) = costs.currency
                then {{ seconds_to_hours('weights.gpu_seconds') }}
        end as gpu_hours,
        case
            when coalesce(first_currencies.currency, costs.currency) = costs.currency
                then {{ seconds_to_hours('weights.cpu_core_seconds') }}
        end as core_hours,
        case
            when coalesce(first_currencies.currency, costs.currency) = costs.currency
                then {{ seconds_to_hours('weights.memory_gib_seconds') }}
        end as memory_gib_hours,
        case
            when coalesce(first_currencies.currency, costs.currency) = costs.currency
                then cast(weights.energy_kwh as numeric(38, 9))
        end as energy_kwh,
        {{ quotient('weights.busy_weight', 'weights.sampled_weight') }} as busy_share,
        job_days.start_at,
        job_days.end_at
    from costs
    left join first_currencies
        on
            costs.usage_date = first_currencies.usage_date
            and costs.job_key = first_currencies.job_key
            and costs.pool_id = first_currencies.pool_id
    left join weights
        on
            costs.usage_date = weights.usage_date
            and costs.job_key = weights.job_key
            and costs.pool_id = weights.pool_id
    left join job_days on costs.usage_date = job_days.usage_date and costs.job_key = job_days.job_key
    left join teams on costs.usage_date = teams.usage_date and job_days.team_id = teams.team_id
    left join projects on costs.usage_date = projects.usage_date and job_days.project_id = projects.project_id
    left join pools on costs.usage_date = pools.usage_date and costs.pool_id = pools.pool_id
)

select * from final
