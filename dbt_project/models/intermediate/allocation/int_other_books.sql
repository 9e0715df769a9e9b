-- grain: one row per UTC day, pool, component, currency, payer, allocation kind, idle cause, policy row, counterparty and (burst) reason
-- The books before adjustments, without what lies side by side: the direct cost of jobs, and what they pay by the use of the day.
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}
{%- set no_quantity = as_weight('null') %}
{#- What the rows of each part of the books say, where it is not the usual. -#}
{%- set usual = {
    'team_id': 'team_id',
    'project_id': 'project_id',
    'user_name': 'user_name',
    'job_key': 'job_key',
    'allocation_kind': no_text,
    'idle_cause': no_text,
    'driver': no_text,
    'quantity': no_quantity,
    'policy_row': no_text,
    'counterparty_team_id': no_text,
    'reason': 'reason',
    'amount': 'amount',
} %}
{%- set by_driver = {'driver': 'driver', 'quantity': 'quantity'} %}
{%- set by_policy = {'policy_row': 'policy_row'} %}
{%- set no_job = {'user_name': no_text, 'job_key': no_text} %}
{%- set no_project = dict(no_job, project_id=no_text) %}
{#- Each payer, cause and policy row was added up before. -#}
{%- set of_idle = [('idle', "'idle'", dict(by_policy, idle_cause='idle_cause'))] %}
{%- set of_others = [
    ('daily', "'direct'", by_driver),
    ('shared', 'allocation_kind', no_job),
    (
        'without_capacity', "'unattributed'",
        dict(no_project, team_id="'unattributed'", reason="'cost without known capacity'", amount='cost'),
    ),
    ('burst', "'burst'", dict(by_policy, reason="'use above entitlement pays for burst capacity first'")),
    ('lender_credits', "'burst'", dict(by_policy, **no_project)),
    ('outcome_credits', "'outcome_credit'", dict(by_policy, counterparty_team_id="'platform'", amount='-amount')),
    (
        'outcome_credits', "'outcome_credit'",
        dict(by_policy, team_id="'platform'", counterparty_team_id='team_id', **no_project),
    ),
] %}
{%- set reason = "coalesce(books.reason, allocation_policies.reason_of_use, 'in proportion to use')" %}
{%- set key = [
    'usage_date', 'pool_id', 'component', 'currency', 'team_id', 'project_id', 'user_name', 'job_key', 'allocation_kind',
    'idle_cause',
] %}

with allocation_policies as (
    select
        usage_date,
        pool_id,
        component,
        policy_row,
        method,
        case method
            when 'time' then 'by time present'
            when 'complexity' then 'in proportion to use times the weight of the workload'
        end as reason_of_use
    from {{ ref('int_allocation_policies') }}
),

idle as (
    select * from {{ ref('int_allocations_idle') }}
),

daily as (
    select * from {{ ref('int_allocations_daily') }}
),

shared as (
    select * from {{ ref('int_allocations_shared') }}
),

burst as (
    select * from {{ ref('int_burst_hours') }}
),

lender_credits as (
    select * from {{ ref('int_lender_credits') }}
),

outcome_credits as (
    select * from {{ ref('int_outcome_credits') }}
),

without_capacity as (
    select * from {{ ref('int_pool_hour_costs') }}
    where not has_capacity
),
{%- for name, parts in {'of_idle': of_idle, 'of_others': of_others}.items() %}

{{ name }} as (
    {%- for relation, kind, said in parts %}
    {%- set columns = dict(usual, allocation_kind=kind, **said) %}
    select
        {%- for column, expression in columns.items() %}
        {{ column if expression == column else expression ~ ' as ' ~ column }},
        {%- endfor %}
        usage_date,
        pool_id,
        component,
        currency
    from {{ relation }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

{{ name }}_explained as (
    select
        {{ qualified('books', key) }},
        coalesce(books.policy_row, allocation_policies.policy_row) as policy_row,
        books.counterparty_team_id,
        books.driver,
        books.quantity,
        coalesce(allocation_policies.method, 'direct') as method,
        case
            when books.team_id = 'unattributed' and books.allocation_kind in ('direct', 'idle')
                then {{ dbt.concat([reason, "', by somebody whom no payer rule knows'"]) }}
            else {{ reason }}
        end as reason,
        books.amount
    from {{ name }} as books
    left join allocation_policies
        on
            books.usage_date = allocation_policies.usage_date
            and books.pool_id = allocation_policies.pool_id
            and books.component = allocation_policies.component
),
{%- endfor %}

-- Several bill lines of one pool and component can reach the same payer for different reasons (owned, and by use).
final as (
    select * from of_idle_explained
    union all
    select
        {{ key | join(', ') }},
        policy_row,
        counterparty_team_id,
        max(driver) as driver,
        sum(quantity) as quantity,
        max(method) as method,
        min(reason) as reason,
        cast(sum(amount) as numeric(38, 9)) as amount
    from of_others_explained
    group by
        {{ key | join(', ') }},
        policy_row,
        counterparty_team_id,
        -- A team can lend in one hour and borrow in another: what it gets and what it pays stay apart.
        case when allocation_kind = 'burst' then reason end
)

select * from final
