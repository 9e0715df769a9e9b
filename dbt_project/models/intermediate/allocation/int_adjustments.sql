-- grain: one row per adjustment, UTC day, pool, component, currency, payer and side: what it adds to or takes from the payer
-- The scope's payers and the funder always sum to zero. Three kinds: a percentage of the scope's cost, a rate per GPU-hour
-- instead of its cost, or an amount spread evenly over the days of the adjustment.
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}
{%- set scope = ['usage_date', 'adjustment_id', 'pool_id', 'component', 'currency'] %}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with adjustments as (
    select
        days.usage_date,
        adjustments.*,
        {{ day_start_ms('days.usage_date') }} as day_ms,
        {{ day_start_ms('adjustments.valid_from') }} as first_ms,
        {{ day_start_ms('adjustments.valid_to') }} as end_ms
    from {{ ref('int_days') }} as days
    inner join {{ ref('stg_policy__adjustments') }} as adjustments on {{ valid_on('adjustments', 'days.usage_date') }}
),

team_ancestors as (
    select * from {{ ref('int_team_ancestors') }}
),

job_classes as (
    select * from {{ ref('int_job_classes') }}
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
    from {{ ref('int_drivers_daily') }} as drivers
    left join job_classes on drivers.usage_date = job_classes.usage_date and drivers.job_key = job_classes.job_key
    where drivers.driver = 'gpu_seconds' and drivers.job_key is not null
),

direct_costs as (
    select * from {{ ref('int_overhead_weights') }}
    where overhead_base = 'direct_cost'
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

class_payers as (
    select
        rated.usage_date,
        rated.adjustment_id,
        rated.team_id,
        rated.project_id,
        {{ nano_units('greatest(sum(rated.amount), 0)') }} as weight
    from (
        {{ in_reporting_currency('class_costs', ['usage_date', 'adjustment_id', 'team_id', 'project_id']) }}
    ) as rated
    group by rated.usage_date, rated.adjustment_id, rated.team_id, rated.project_id
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
        {{ share('adjustments.value', 'adjustments.day_ms + 86400000 - adjustments.first_ms', 'adjustments.end_ms - adjustments.first_ms') }}
        - {{ share('adjustments.value', 'adjustments.day_ms - adjustments.first_ms', 'adjustments.end_ms - adjustments.first_ms') }}
            as whole
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

given as (
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
),

totals as (
    select
        {{ scope | join(', ') }},
        cast(sum(amount) as numeric(38, 9)) as total
    from given
    group by {{ scope | join(', ') }}
),

-- Funded by all: by the teams that are outside of it here, by their direct cost.
scope_teams as (
    select distinct
        {{ scope | join(', ') }},
        team_id
    from given
),

direct_by_team as (
    select
        usage_date,
        pool_id,
        component,
        currency,
        team_id,
        {{ nano_units('sum(amount)') }} as weight
    from books
    where allocation_kind = 'direct' and team_id <> 'platform'
    group by usage_date, pool_id, component, currency, team_id
    union all
    select
        direct_costs.usage_date,
        'none' as pool_id,
        'other' as component,
        currencies.currency,
        direct_costs.team_id,
        sum(direct_costs.weight) as weight
    from direct_costs
    cross join (select distinct currency from adjustments where adjustment_kind = 'amount') as currencies
    group by direct_costs.usage_date, currencies.currency, direct_costs.team_id
),

others as (
    select
        {{ qualified('totals', scope) }},
        totals.total,
        direct_by_team.team_id,
        direct_by_team.weight
    from totals
    inner join adjustments
        on totals.usage_date = adjustments.usage_date and totals.adjustment_id = adjustments.adjustment_id
    inner join direct_by_team
        on {{ equal_on('totals', 'direct_by_team', ['usage_date', 'pool_id', 'component', 'currency']) }}
    left join scope_teams
        on {{ equal_on('totals', 'scope_teams', scope) }} and direct_by_team.team_id = scope_teams.team_id
    where adjustments.funded_by = 'all' and direct_by_team.weight > 0 and scope_teams.team_id is null
),

other_parts as (
    {{ split('others', ['total'], 'weight', by=scope, order_by=['team_id']) }}
),

funded as (
    select
        {{ scope | join(', ') }},
        team_id,
        -total_part as amount
    from other_parts
    union all
    select
        {{ qualified('totals', scope) }},
        case when adjustments.funded_by = 'all' then 'platform' else adjustments.funded_by end as team_id,
        -totals.total as amount
    from totals
    inner join adjustments
        on totals.usage_date = adjustments.usage_date and totals.adjustment_id = adjustments.adjustment_id
    left join (select distinct {{ scope | join(', ') }} from others) as funded_by_others
        on {{ equal_on('totals', 'funded_by_others', scope) }}
    where funded_by_others.adjustment_id is null
),

-- The other side of a pair, where it is one team.
pairs as (
    select
        totals.usage_date,
        totals.adjustment_id,
        totals.pool_id,
        totals.component,
        totals.currency,
        case when funders.team_count = 1 then funders.team_id end as funder_team_id,
        case when receivers.team_count = 1 then receivers.team_id end as receiver_team_id
    from totals
    inner join (
        select
            {{ scope | join(', ') }},
            count(distinct team_id) as team_count,
            min(team_id) as team_id
        from funded
        group by {{ scope | join(', ') }}
    ) as funders on {{ equal_on('totals', 'funders', scope) }}
    inner join (
        select
            {{ scope | join(', ') }},
            count(*) as team_count,
            min(team_id) as team_id
        from scope_teams
        group by {{ scope | join(', ') }}
    ) as receivers on {{ equal_on('totals', 'receivers', scope) }}
),

sides as (
    select
        {{ qualified('given', scope) }},
        {{ qualified('given', payer) }},
        given.amount,
        pairs.funder_team_id as counterparty_team_id
    from given
    inner join pairs on {{ equal_on('given', 'pairs', scope) }}
    union all
    select
        {{ qualified('funded', scope) }},
        funded.team_id,
        {{ no_text }} as project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        funded.amount,
        pairs.receiver_team_id as counterparty_team_id
    from funded
    inner join pairs on {{ equal_on('funded', 'pairs', scope) }}
),

final as (
    select
        sides.*,
        adjustments.policy_row,
        adjustments.reason
    from sides
    inner join adjustments
        on sides.usage_date = adjustments.usage_date and sides.adjustment_id = adjustments.adjustment_id
    where sides.amount <> 0
)

select * from final
