-- grain: one row per adjustment, UTC day, pool, component, currency, payer and side: what it adds to or takes from the payer
-- What the scope's payers get, and the same again with the opposite sign from whoever funds it.
{%- set scope = ['usage_date', 'adjustment_id', 'pool_id', 'component', 'currency'] %}
{%- set cost_key = ['usage_date', 'pool_id', 'component', 'currency'] %}
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with given as (
    select * from {{ ref('int_adjusted_payers') }}
),

adjustments as (
    select * from {{ ref('stg_policy__adjustments') }}
),

books as (
    select * from {{ ref('int_books') }}
    where allocation_kind = 'direct' and team_id <> 'platform'
),

direct_costs as (
    select * from {{ ref('int_overhead_weights') }}
    where overhead_base = 'direct_cost'
),

totals as (
    select
        {{ qualified('given', scope) }},
        adjustments.funded_by,
        adjustments.team_id as named_team_id,
        adjustments.policy_row,
        adjustments.reason,
        cast(sum(given.amount) as numeric(38, 9)) as total,
        -- The other side of a pair, where it is one team.
        case when count(distinct given.team_id) = 1 then min(given.team_id) end as scope_team_id
    from given
    inner join adjustments
        on given.adjustment_id = adjustments.adjustment_id and {{ valid_on('adjustments', 'given.usage_date') }}
    group by
        {{ qualified('given', scope) }},
        adjustments.funded_by, adjustments.team_id, adjustments.policy_row, adjustments.reason
),

-- Whoever is in the scope does not fund it: the teams that it reaches here, and those below a team that it names.
scope_teams as (
    select
        {{ scope | join(', ') }},
        team_id
    from given
    union distinct
    select
        {{ qualified('totals', scope) }},
        team_ancestors.team_id
    from totals
    inner join {{ ref('int_team_ancestors') }} as team_ancestors
        on totals.usage_date = team_ancestors.usage_date and totals.named_team_id = team_ancestors.ancestor_team_id
),

-- Funded by all: by the teams that are outside of it here, by their direct cost; what concerns no pool, by that of the day.
funded_by_all as (
    select distinct {{ cost_key | join(', ') }}
    from totals
    where funded_by = 'all'
),

direct_by_team as (
    select
        {{ qualified('books', cost_key) }},
        books.team_id,
        {{ nano_units('sum(books.amount)') }} as weight
    from books
    inner join funded_by_all on {{ equal_on('books', 'funded_by_all', cost_key) }}
    group by {{ qualified('books', cost_key) }}, books.team_id
),

direct_of_day as (
    select
        usage_date,
        team_id,
        sum(weight) as weight
    from direct_costs
    group by usage_date, team_id
),

candidates as (
    select
        totals.*,
        direct_by_team.team_id,
        direct_by_team.weight
    from totals
    inner join direct_by_team
        on {{ equal_on('totals', 'direct_by_team', cost_key) }}
    where totals.funded_by = 'all' and direct_by_team.weight > 0
    union all
    select
        totals.*,
        direct_of_day.team_id,
        direct_of_day.weight
    from totals
    inner join direct_of_day on totals.usage_date = direct_of_day.usage_date
    where totals.funded_by = 'all' and totals.pool_id = 'none' and direct_of_day.weight > 0
),

others as (
    select candidates.*
    from candidates
    left join scope_teams on {{ equal_on('candidates', 'scope_teams', scope + ['team_id']) }}
    where scope_teams.team_id is null
),

other_parts as (
    {{ split('others', ['total'], 'weight', by=scope, order_by=['team_id']) }}
),

other_groups as (
    select distinct {{ scope | join(', ') }}
    from others
),

funded as (
    select
        {{ scope | join(', ') }},
        team_id,
        policy_row,
        reason,
        scope_team_id as counterparty_team_id,
        -total_part as amount
    from other_parts
    union all
    select
        {{ qualified('totals', scope) }},
        case when totals.funded_by = 'all' then 'platform' else totals.funded_by end as team_id,
        totals.policy_row,
        totals.reason,
        totals.scope_team_id as counterparty_team_id,
        -totals.total as amount
    from totals
    left join other_groups on {{ equal_on('totals', 'other_groups', scope) }}
    where other_groups.adjustment_id is null
),

funders as (
    select
        {{ scope | join(', ') }},
        case when count(distinct team_id) = 1 then min(team_id) end as team_id
    from funded
    group by {{ scope | join(', ') }}
),

final as (
    select
        {{ qualified('given', scope) }},
        given.team_id,
        given.project_id,
        given.user_name,
        given.job_key,
        totals.policy_row,
        totals.reason,
        funders.team_id as counterparty_team_id,
        given.amount
    from given
    inner join totals on {{ equal_on('given', 'totals', scope) }}
    inner join funders on {{ equal_on('given', 'funders', scope) }}
    union all
    select
        {{ scope | join(', ') }},
        team_id,
        {{ no_text }} as project_id,
        {{ no_text }} as user_name,
        {{ no_text }} as job_key,
        policy_row,
        reason,
        counterparty_team_id,
        amount
    from funded
)

select * from final
where amount <> 0
