-- grain: one row per adjustment, UTC day, pool, component, currency and payer in its scope: what it adds to the payer's cost
-- Three kinds: a percentage of the scope's cost, a rate per GPU-hour instead of its cost, or an amount spread evenly over
-- the days of the adjustment. A kind more is a branch more here; who funds it is another step (int_adjustments).
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set scope = ['usage_date', 'adjustment_id', 'pool_id', 'component', 'currency'] %}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with adjustments as (
    select
        days.usage_date,
        adjustments.*,
        {{ day_start_ms('days.usage_date') }} - {{ day_start_ms('adjustments.valid_from') }} as past_ms,
        {{ day_start_ms('adjustments.valid_to') }} - {{ day_start_ms('adjustments.valid_from') }} as all_ms
    from {{ ref('int_days') }} as days
    inner join {{ ref('stg_policy__adjustments') }} as adjustments on {{ valid_on('adjustments', 'days.usage_date') }}
),

team_ancestors as (
    select * from {{ ref('int_team_ancestors') }}
),

-- What class a job is of matters only where an adjustment names one.
class_days as (
    select distinct usage_date
    from adjustments
    where workload_class is not null
),

job_classes as (
    select
        jobs.usage_date,
        jobs.job_key,
        jobs.workload_class
    from {{ ref('int_job_payers') }} as jobs
    inner join class_days on jobs.usage_date = class_days.usage_date
),

books as (
    select
        books.*,
        job_classes.workload_class
    from {{ ref('int_books') }} as books
    left join job_classes on books.usage_date = job_classes.usage_date and books.job_key = job_classes.job_key
),

drivers as (
    select
        drivers.*,
        job_classes.workload_class
    from {{ ref('int_drivers') }} as drivers
    inner join {{ ref('int_booked_days') }} as booked_days on drivers.usage_date = booked_days.usage_date
    left join job_classes on drivers.usage_date = job_classes.usage_date and drivers.job_key = job_classes.job_key
    where drivers.driver = 'gpu_seconds' and drivers.hour_ms is not null
),

-- A scope that names a team covers the teams below it.
scopes as (
    select
        adjustments.*,
        team_ancestors.team_id as covered_team_id
    from adjustments
    left join team_ancestors
        on
            adjustments.usage_date = team_ancestors.usage_date
            and adjustments.team_id = team_ancestors.ancestor_team_id
),

-- What the scope's payers cost, and for rates what they held.
in_scope as (
    select
        adjustments.usage_date,
        adjustments.adjustment_id,
        books.pool_id,
        books.component,
        books.currency,
        {{ qualified('books', payer) }},
        books.amount as cost,
        {{ as_weight('0') }} as gpu_held
    from scopes as adjustments
    inner join books
        on
            {{ adjustment_covers('adjustments', 'books') }}
            and (adjustments.currency is null or adjustments.currency = books.currency)
            and (adjustments.component is null or adjustments.component = books.component)
            and (adjustments.adjustment_kind = 'percent' or books.component = 'gpu')
    where adjustments.adjustment_kind in ('percent', 'rate')
    union all
    select
        adjustments.usage_date,
        adjustments.adjustment_id,
        drivers.pool_id,
        'gpu' as component,
        adjustments.currency,
        {{ qualified('drivers', payer) }},
        cast(0 as numeric(38, 9)) as cost,
        drivers.quantity as gpu_held
    from scopes as adjustments
    inner join drivers on {{ adjustment_covers('adjustments', 'drivers') }}
    where adjustments.adjustment_kind = 'rate'
),

payers as (
    select
        {{ scope | join(', ') }},
        {{ payer | join(', ') }},
        cast(sum(cost) as numeric(38, 9)) as cost,
        sum(gpu_held) as gpu_held
    from in_scope
    group by {{ scope | join(', ') }}, {{ payer | join(', ') }}
),

scope_sums as (
    select
        {{ scope | join(', ') }},
        cast(sum(cost) as numeric(38, 9)) as cost,
        sum(gpu_held) as gpu_held
    from payers
    group by {{ scope | join(', ') }}
),

-- The whole of a percentage or of a rate, rounded once, and each payer's weight in it.
weighted as (
    select
        {{ qualified('payers', scope) }},
        {{ qualified('payers', payer) }},
        adjustments.adjustment_kind,
        payers.cost,
        case adjustments.adjustment_kind
            when 'percent'
                then {{ share(
                    'case when adjustments.value < 0 then -scope_sums.cost else scope_sums.cost end',
                    nano_units('abs(adjustments.value)'),
                    as_weight('100000000000')
                ) }}
            else {{ share('adjustments.value', 'scope_sums.gpu_held', as_weight('90720000000')) }}
        end as whole,
        case adjustments.adjustment_kind
            when 'percent' then {{ nano_units('payers.cost') }} * cast(sign(scope_sums.cost) as int64)
            else payers.gpu_held
        end as weight
    from payers
    inner join scope_sums on {{ equal_on('payers', 'scope_sums', scope) }}
    inner join adjustments
        on payers.usage_date = adjustments.usage_date and payers.adjustment_id = adjustments.adjustment_id
),

parts as (
    {{ split('weighted', ['whole'], 'weight', by=scope, order_by=payer) }}
),

-- An amount belongs to the project or team that it names; one for a class, to the teams whose jobs are of the class. On
-- a day without such jobs it moves nothing.
class_costs as (
    select
        adjustments.usage_date,
        adjustments.adjustment_id,
        books.team_id,
        books.project_id,
        books.currency,
        cast(sum(books.amount) as numeric(38, 9)) as amount
    from adjustments
    inner join books on adjustments.usage_date = books.usage_date and adjustments.workload_class = books.workload_class
    where
        adjustments.adjustment_kind = 'amount'
        and adjustments.team_id is null
        and adjustments.project_id is null
        and books.allocation_kind = 'direct'
        and books.team_id <> 'platform'
    group by adjustments.usage_date, adjustments.adjustment_id, books.team_id, books.project_id, books.currency
),

rated_class_costs as (
    {{ in_reporting_currency('class_costs', ['usage_date', 'adjustment_id', 'team_id', 'project_id']) }}
),

class_payers as (
    select
        usage_date,
        adjustment_id,
        team_id,
        project_id,
        {{ nano_units('greatest(sum(amount), 0)') }} as weight
    from rated_class_costs
    group by usage_date, adjustment_id, team_id, project_id
),

amounts as (
    select
        adjustments.usage_date,
        adjustments.adjustment_id,
        'none' as pool_id,
        'other' as component,
        adjustments.currency,
        coalesce(projects.team_id, adjustments.team_id, class_payers.team_id) as team_id,
        coalesce(adjustments.project_id, class_payers.project_id) as project_id,
        coalesce(class_payers.weight, 1) as weight,
        {{ share('adjustments.value', 'adjustments.past_ms + 86400000', 'adjustments.all_ms') }}
        - {{ share('adjustments.value', 'adjustments.past_ms', 'adjustments.all_ms') }} as whole
    from adjustments
    left join {{ ref('int_project_days') }} as projects
        on adjustments.usage_date = projects.usage_date and adjustments.project_id = projects.project_id
    left join class_payers
        on
            adjustments.usage_date = class_payers.usage_date
            and adjustments.adjustment_id = class_payers.adjustment_id
            and class_payers.weight > 0
    where
        adjustments.adjustment_kind = 'amount'
        and coalesce(projects.team_id, adjustments.team_id, class_payers.team_id) is not null
),

amount_parts as (
    {{ split('amounts', ['whole'], 'weight', by=scope, order_by=['team_id', 'project_id']) }}
),

final as (
    select
        {{ scope | join(', ') }},
        {{ payer | join(', ') }},
        case adjustment_kind when 'percent' then whole_part else coalesce(whole_part, 0) - cost end as amount
    from parts
    where adjustment_kind = 'rate' or whole_part is not null
    union all
    select
        {{ scope | join(', ') }},
        team_id,
        project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        whole_part as amount
    from amount_parts
)

select * from final
