-- grain: one row per UTC day, hour (none: the day), pool, component, idle rule, step and payer: the weight in sharing idle cost
-- Payers are job runs by their number, or teams.
-- One branch per rule, and each for the pools that ask for it alone. A rule shares an amount out in steps: over the steps
-- by their weight, then within each step over its payers. All rules but `peak` have one step. What a rule finds nobody
-- for is paid by the platform.
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}
{%- set components = ['gpu', 'cpu', 'memory', 'energy'] %}

with asked_for as (
    select distinct
        usage_date,
        pool_id,
        component,
        driver,
        idle_rule
    from {{ ref('int_idle_costs') }}
),

drivers as (
    select * from {{ ref('int_drivers') }}
    where hour_ms is not null
),

-- Of energy, and where the hour counts: in hours without use, the day's users pay. Else use of the day is for int_job_idle_costs.
proportional_by_day as (
    {%- for component in components %}
    select
        asked_for.usage_date,
        cast(null as int64) as hour_ms,
        asked_for.pool_id,
        asked_for.component,
        asked_for.idle_rule,
        job_days.job_number,
        job_days.{{ component }}_weight as weight
    from asked_for
    inner join {{ ref('int_job_pool_days') }} as job_days
        on asked_for.usage_date = job_days.usage_date and asked_for.pool_id = job_days.pool_id
    where
        asked_for.component = '{{ component }}'
        and asked_for.idle_rule in ('proportional by hour'{{ ", 'proportional by day'" if component == 'energy' }})
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

proportional_by_hour as (
    {%- for component in components %}
    select
        asked_for.usage_date,
        job_hours.hour_ms,
        asked_for.pool_id,
        asked_for.component,
        asked_for.idle_rule,
        job_hours.job_number,
        job_hours.{{ component }}_weight as weight
    from asked_for
    inner join {{ ref('int_job_pool_hours') }} as job_hours
        on asked_for.usage_date = job_hours.usage_date and asked_for.pool_id = job_hours.pool_id
    where asked_for.component = '{{ component }}' and asked_for.idle_rule = 'proportional by hour'
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

entitled as (
    select
        asked_for.usage_date,
        cast(null as int64) as hour_ms,
        asked_for.pool_id,
        asked_for.component,
        asked_for.idle_rule,
        entitlements.team_id,
        {{ as_weight('entitlements.gpu_units') }} as weight
    from asked_for
    inner join {{ ref('stg_policy__entitlements') }} as entitlements
        on asked_for.pool_id = entitlements.pool_id and {{ valid_on('entitlements', 'asked_for.usage_date') }}
    where asked_for.idle_rule = 'entitlement by day'
),

owners as (
    select
        asked_for.usage_date,
        cast(null as int64) as hour_ms,
        asked_for.pool_id,
        asked_for.component,
        asked_for.idle_rule,
        pools.owner_team_id as team_id,
        {{ as_weight('1') }} as weight
    from asked_for
    inner join {{ ref('int_pool_days') }} as pools
        on asked_for.usage_date = pools.usage_date and asked_for.pool_id = pools.pool_id
    where asked_for.idle_rule = 'owner by day' and pools.owner_team_id is not null
),

-- Reserved energy belongs to whom the GPUs were reserved for (the cores, in a pool without GPUs).
reserving as (
    select
        asked_for.usage_date,
        reserved.hour_ms,
        asked_for.pool_id,
        asked_for.component,
        asked_for.idle_rule,
        reserved.team_id,
        reserved.weight
    from asked_for
    inner join {{ ref('int_reserved_hours') }} as reserved
        on
            asked_for.usage_date = reserved.usage_date
            and asked_for.pool_id = reserved.pool_id
            and (
                asked_for.component = reserved.component
                or (asked_for.component = 'energy' and reserved.component in ('gpu', 'cpu'))
            )
    where asked_for.idle_rule = 'owner by hour'
    qualify
        asked_for.component <> 'energy'
        or reserved.component = 'gpu'
        or max(case when reserved.component = 'gpu' then 1 else 0 end) over (
            partition by asked_for.usage_date, asked_for.pool_id, asked_for.component, reserved.hour_ms
        ) = 0
),

team_hours as (
    select
        asked_for.usage_date,
        asked_for.pool_id,
        asked_for.component,
        asked_for.idle_rule,
        drivers.team_id,
        drivers.hour_ms,
        sum(drivers.quantity) as quantity
    from asked_for
    inner join drivers
        on
            asked_for.usage_date = drivers.usage_date
            and asked_for.pool_id = drivers.pool_id
            and asked_for.driver = drivers.driver
    where asked_for.idle_rule in ('even by day', 'peak by day')
    group by
        asked_for.usage_date, asked_for.pool_id, asked_for.component, asked_for.idle_rule, drivers.team_id, drivers.hour_ms
),

demands as (
    select
        usage_date,
        pool_id,
        component,
        idle_rule,
        team_id,
        max(quantity) as demand
    from team_hours
    group by usage_date, pool_id, component, idle_rule, team_id
),

-- The airport game: whoever needs a long runway also uses the short one. Each step from one demand to the next higher
-- is paid in equal parts by all who reach it, which is the Shapley value.
steps as (
    select
        demands.*,
        demand - lag(demand, 1, 0) over (
            partition by usage_date, pool_id, component, idle_rule order by demand
        ) as height
    from (
        select distinct
            usage_date,
            pool_id,
            component,
            idle_rule,
            demand
        from demands
        where idle_rule = 'peak by day'
    ) as demands
),

peaks as (
    select
        demands.usage_date,
        cast(null as int64) as hour_ms,
        demands.pool_id,
        demands.component,
        demands.idle_rule,
        steps.demand as step,
        steps.height as step_weight,
        demands.team_id,
        {{ as_weight('1') }} as weight
    from steps
    inner join demands
        on
            steps.usage_date = demands.usage_date
            and steps.pool_id = demands.pool_id
            and steps.component = demands.component
            and steps.idle_rule = demands.idle_rule
            and steps.demand <= demands.demand
),

active_teams as (
    select
        usage_date,
        cast(null as int64) as hour_ms,
        pool_id,
        component,
        idle_rule,
        team_id,
        {{ as_weight('1') }} as weight
    from demands
    where idle_rule = 'even by day'
),

summed as (
    select
        parts.*,
        {{ running_and_total(
            'weight', ['usage_date', 'hour_ms', 'pool_id', 'component', 'idle_rule', 'step'], ['team_id', 'job_number']
        ) }}
    from (
        {%- for rows_of_jobs in ['proportional_by_day', 'proportional_by_hour'] %}
        select
            usage_date, hour_ms, pool_id, component, idle_rule,
            {{ as_weight('1') }} as step,
            {{ as_weight('1') }} as step_weight,
            {{ no_text }} as team_id,
            job_number,
            weight,
            'in proportion to use' as reason
        from {{ rows_of_jobs }}
        {%- if not loop.last %}
        union all
        {%- endif %}
        {%- endfor %}
        {%- for rows_of_teams, reason in {
            'active_teams': 'in equal parts to the teams that used the pool',
            'entitled': 'by entitlement to the pool',
            'owners': 'the owner of the pool pays this cause',
            'reserving': 'held free by the reservation of this team',
            'peaks': 'by responsibility for the peak of the day',
        }.items() %}
        union all
        select
            usage_date, hour_ms, pool_id, component, idle_rule,
            {{ 'step' if rows_of_teams == 'peaks' else as_weight('1') }} as step,
            {{ 'step_weight' if rows_of_teams == 'peaks' else as_weight('1') }} as step_weight,
            team_id,
            cast(null as int64) as job_number,
            weight,
            '{{ reason }}' as reason
        from {{ rows_of_teams }}
        {%- endfor %}
    ) as parts
    where weight > 0
),

final as (
    select
        usage_date,
        hour_ms,
        pool_id,
        component,
        idle_rule,
        step,
        step_weight,
        team_id,
        job_number,
        weight,
        running_weight,
        total_weight,
        reason
    from summed
)

select * from final
