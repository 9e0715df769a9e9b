{{ config(meta={"dagster": {"ref": {"name": "rpt_open_invoice_lines"}}}) }}
-- Closed is closed: what was charged for a month, with its true-ups, and what is open of it are the books, exactly. Of the months that
-- the window touches, whose days are all built; months before the first close are nobody's invoice.
with unbuilt as (
    select closed_days.period_date
    from {{ ref('fct_closed_days') }} as closed_days
    left join {{ ref('fct_days') }} as days on closed_days.usage_date = days.usage_date
    where closed_days.policy_hash <> '' and days.usage_date is null
),

first_close as (
    select coalesce(min(period_date), date '1970-01-01') as period_date from {{ ref('fct_closed_days') }}
),

sides as (
    select
        {{ month_of('usage_date') }} as month_date,
        team_id,
        project_id,
        component,
        currency,
        amount
    from {{ ref('fct_cost_allocations') }}
    where {{ in_months('usage_date') }}
    {%- for lines in ['fct_invoice_lines', 'rpt_open_invoice_lines'] %}
    union all
    select
        coalesce(corrected_period_date, period_date) as month_date,
        team_id,
        project_id,
        component,
        currency,
        -amount as amount
    from {{ ref(lines) }}
    where {{ in_months('coalesce(corrected_period_date, period_date)') }}
    {%- endfor %}
)

select
    sides.month_date,
    sides.team_id,
    sides.project_id,
    sides.component,
    sides.currency,
    sum(sides.amount) as difference
from sides
cross join first_close
where
    sides.month_date >= first_close.period_date
    and sides.month_date not in (select period_date from unbuilt)
group by sides.month_date, sides.team_id, sides.project_id, sides.component, sides.currency
having sum(sides.amount) <> 0
