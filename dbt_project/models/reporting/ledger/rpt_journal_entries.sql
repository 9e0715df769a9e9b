-- grain: one row per posting (closed month and currency) and line of it
-- Every amount is there twice: debited to the team's cost centre, credited to the platform, which paid the bill; the other way round where
-- a team gets money back. Teams on showback are not posted.
with charged as (
    select
        close_number,
        period_date,
        invoice_id,
        team_id,
        team_name,
        cost_centre,
        project_id,
        project_name,
        component,
        corrected_period_date,
        currency,
        reporting_currency,
        reporting_rate,
        expense_account,
        clearing_account,
        clearing_cost_centre,
        closed_at,
        cast(sum(invoiced_amount) as numeric(38, 9)) as amount,
        cast(sum(reporting_amount) as numeric(38, 9)) as reporting_amount
    from {{ ref('fct_invoice_lines') }}
    where billing_mode = 'chargeback'
    group by
        close_number, period_date, invoice_id, team_id, team_name, cost_centre, project_id, project_name, component, corrected_period_date,
        currency, reporting_currency, reporting_rate, expense_account, clearing_account, clearing_cost_centre, closed_at
),

entries as (
    {%- for side in ['team', 'platform'] %}
    select
        charged.close_number,
        charged.period_date,
        charged.invoice_id,
        charged.team_id,
        charged.team_name,
        charged.project_id,
        charged.project_name,
        charged.component,
        charged.corrected_period_date,
        charged.currency,
        charged.reporting_currency,
        charged.reporting_rate,
        charged.closed_at,
        charged.cost_centre as team_cost_centre,
        '{{ side }}' as side,
        {%- if side == 'team' %}
        charged.expense_account as account,
        charged.cost_centre,
        charged.amount,
        charged.reporting_amount
        {%- else %}
        charged.clearing_account as account,
        charged.clearing_cost_centre as cost_centre,
        -charged.amount as amount,
        -charged.reporting_amount as reporting_amount
        {%- endif %}
    from charged
    where charged.amount <> 0 or charged.reporting_amount <> 0
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select
    {{ dbt.concat(["'APP-'", "substr(" ~ as_text('period_date') ~ ", 1, 7)", "'-'", 'currency']) }} as posting_id,
    row_number() over (
        partition by close_number, currency
        order by
            team_id asc, project_id asc nulls first, component asc, corrected_period_date asc nulls first,
            team_cost_centre asc nulls first, side desc
    ) as line_number,
    period_date,
    {{ next_month('period_date') }} - 1 as posting_date,
    account,
    cost_centre,
    side,
    currency,
    cast(greatest(amount, 0) as numeric(38, 9)) as debit,
    cast(greatest(-amount, 0) as numeric(38, 9)) as credit,
    reporting_currency,
    reporting_rate,
    cast(greatest(reporting_amount, 0) as numeric(38, 9)) as reporting_debit,
    cast(greatest(-reporting_amount, 0) as numeric(38, 9)) as reporting_credit,
    invoice_id,
    team_id,
    team_name,
    project_id,
    project_name,
    component,
    corrected_period_date,
    close_number,
    closed_at
from entries
