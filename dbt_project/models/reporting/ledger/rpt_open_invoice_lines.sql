-- grain: one row per open month, team, project, component, allocation kind, corrected month, billing mode, cost centre and currency
-- What the next closes would append: the months that are not closed yet, and, in the first of them, what the books of closed months
-- say today beyond what was charged for them. Closed lines plus these are the books.
{%- set payer = ['team_id', 'project_id', 'component', 'billing_mode', 'cost_centre', 'currency'] %}
{%- set order = ['team_id', 'project_id', 'component', 'allocation_kind', 'corrected_period_date', 'billing_mode', 'cost_centre'] %}
{%- set kinds = ['direct', 'idle', 'shared', 'burst', 'outcome_credit', 'adjustment', 'unattributed'] %}

with team_costs as (
    select * from {{ ref('rpt_team_costs_daily') }}
),

days as (
    select * from {{ ref('fct_days') }}
),

closed_days as (
    select * from {{ ref('fct_closed_days') }}
),

closed_lines as (
    select * from {{ ref('fct_invoice_lines') }}
),

teams as (
    select * from {{ ref('dim_teams') }}
),

projects as (
    select * from {{ ref('dim_projects') }}
),

rates as (
    select * from {{ ref('dim_exchange_rates') }}
),

accounts as (
    select * from {{ ref('dim_journal_accounts') }}
),

-- All months count, so they are read from the days' sums and not from each job's cost.
monthly as (
    select
        {%- for kind in kinds %}
        sum({{ kind }}_cost) as {{ kind }}_cost,
        {%- endfor %}
        {{ payer | join(', ') }},
        month_date
    from team_costs
    group by month_date, {{ payer | join(', ') }}
),

allocation_kinds as (
    {%- for kind in kinds %}
    select '{{ kind }}' as allocation_kind
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

books as (
    select
        monthly.month_date,
        {{ qualified('monthly', payer) }},
        allocation_kinds.allocation_kind,
        cast(
            case allocation_kinds.allocation_kind
                {%- for kind in kinds %}
                when '{{ kind }}' then monthly.{{ kind }}_cost
                {%- endfor %}
            end as numeric(38, 9)
        ) as amount
    from monthly
    cross join allocation_kinds
),

last_close as (
    select max(period_date) as period_date from closed_days
),

-- How the days of a closed month differ from what its last close saw. A month of which days are missing, as in a warehouse that is being
-- built anew, says nothing until they are there.
closed_months as (
    select
        closed_days.period_date as month_date,
        sum(case when closed_days.policy_hash <> '' and days.usage_date is null then 1 else 0 end) as missing_days,
        sum(case when closed_days.policy_hash = '' and days.usage_date is not null then 1 else 0 end) as late_days,
        sum(case when closed_days.policy_hash <> '' and days.bill_hash <> closed_days.bill_hash then 1 else 0 end) as bill_days,
        sum(case when closed_days.policy_hash <> '' and days.records_hash <> closed_days.records_hash then 1 else 0 end) as record_days,
        sum(case when closed_days.policy_hash <> '' and days.policy_hash <> closed_days.policy_hash then 1 else 0 end) as policy_days,
        string_agg(
            distinct case when days.policy_hash <> closed_days.policy_hash then closed_days.retroactive_reason end, '; '
            order by case when days.policy_hash <> closed_days.policy_hash then closed_days.retroactive_reason end
        ) as policy_reasons
    from closed_days
    left join days on closed_days.usage_date = days.usage_date
    group by closed_days.period_date
),

causes as (
    select
        month_date,
        case
            when late_days + bill_days + record_days + policy_days = 0 then 'changed models'
            else substr({{ dbt.concat([
                "case when late_days > 0 then " ~ dbt.concat(["'; built after the close ('", as_text('late_days'), "' days)'"]) ~ " else '' end",
                "case when bill_days > 0 then " ~ dbt.concat(["'; restated bill ('", as_text('bill_days'), "' days)'"]) ~ " else '' end",
                "case when record_days > 0 then " ~ dbt.concat(["'; corrected records ('", as_text('record_days'), "' days)'"]) ~ " else '' end",
                "case when policy_days > 0 then " ~ dbt.concat([
                    "'; changed policy ('", as_text('policy_days'), "' days)'", "coalesce(" ~ dbt.concat(["': '", 'policy_reasons']) ~ ", '')"
                ]) ~ " else '' end",
            ]) }}, 3)
        end as cause
    from closed_months
    where missing_days = 0
),

booked_and_charged as (
    select
        books.month_date,
        {{ qualified('books', payer) }},
        books.amount
    from books
    inner join causes on books.month_date = causes.month_date
    union all
    select
        coalesce(closed_lines.corrected_period_date, closed_lines.period_date) as month_date,
        {{ qualified('closed_lines', payer) }},
        -closed_lines.amount as amount
    from closed_lines
    inner join causes on coalesce(closed_lines.corrected_period_date, closed_lines.period_date) = causes.month_date
),

differences as (
    select
        month_date,
        {{ payer | join(', ') }},
        cast(sum(amount) as numeric(38, 9)) as amount
    from booked_and_charged
    group by month_date, {{ payer | join(', ') }}
),

lines as (
    select
        books.month_date as period_date,
        {{ qualified('books', payer) }},
        books.allocation_kind,
        cast(null as date) as corrected_period_date,
        cast(null as {{ dbt.type_string() }}) as cause,
        books.amount
    from books
    cross join last_close
    where books.amount <> 0 and (last_close.period_date is null or books.month_date > last_close.period_date)
    union all
    select
        {{ next_month('last_close.period_date') }} as period_date,
        {{ qualified('differences', payer) }},
        'true_up' as allocation_kind,
        differences.month_date as corrected_period_date,
        causes.cause,
        differences.amount
    from differences
    inner join causes on differences.month_date = causes.month_date
    cross join last_close
    where differences.amount <> 0
),

-- The rate and the accounts are those of the last day of the month that is posted.
rated as (
    select
        lines.*,
        coalesce(
            rates.rate_to_reporting, case when lines.currency = '{{ var("reporting_currency") }}' then cast(1 as numeric(38, 9)) end
        ) as reporting_rate
    from lines
    left join rates
        on
            lines.currency = rates.currency
            and rates.valid_from < {{ next_month('lines.period_date') }}
            and rates.valid_to >= {{ next_month('lines.period_date') }}
),

valued as (
    select
        rated.*,
        {{ times_rate('rated.amount', 'rated.reporting_rate') }} as reporting_value
    from rated
),

running as (
    select
        valued.*,
        cast(sum(valued.amount) over (
            partition by valued.period_date, valued.currency
            order by {{ qualified('valued', order, ' nulls first') }}
            rows between unbounded preceding and current row
        ) as numeric(38, 9)) as running_amount,
        cast(sum(valued.reporting_value) over (
            partition by valued.period_date, valued.currency
            order by {{ qualified('valued', order, ' nulls first') }}
            rows between unbounded preceding and current row
        ) as numeric(38, 9)) as running_value
    from valued
),

line_accounts as (
    select
        components.period_date,
        components.component,
        accounts.expense_account,
        accounts.clearing_account,
        accounts.clearing_cost_centre
    from (
        select distinct
            period_date,
            component
        from lines
    ) as components
    inner join accounts
        on
            accounts.component in (components.component, '*')
            and accounts.valid_from < {{ next_month('components.period_date') }}
            and accounts.valid_to >= {{ next_month('components.period_date') }}
    qualify row_number() over (
        partition by components.period_date, components.component
        order by case when accounts.component = '*' then 1 else 0 end
    ) = 1
)

select
    running.period_date,
    {{ dbt.concat([
        "case when running.billing_mode = 'chargeback' then 'INV-' else 'STM-' end",
        "substr(" ~ as_text('running.period_date') ~ ", 1, 7)", "'-'", 'running.team_id', "'-'", 'running.currency',
    ]) }} as invoice_id,
    cast(1 as int64) as invoice_version,
    running.billing_mode,
    running.team_id,
    coalesce(teams.team_name, running.team_id) as team_name,
    running.cost_centre,
    running.project_id,
    coalesce(projects.project_name, running.project_id) as project_name,
    running.component,
    running.allocation_kind,
    running.corrected_period_date,
    running.cause,
    running.currency,
    running.amount,
    {{ cents_of('running.amount', 'running.running_amount') }} as invoiced_amount,
    '{{ var("reporting_currency") }}' as reporting_currency,
    running.reporting_rate,
    {{ cents_of('running.reporting_value', 'running.running_value') }} as reporting_amount,
    line_accounts.expense_account,
    line_accounts.clearing_account,
    line_accounts.clearing_cost_centre
from running
left join teams on running.team_id = teams.team_id
left join projects on running.project_id = projects.project_id
left join line_accounts
    on running.period_date = line_accounts.period_date and running.component = line_accounts.component
