-- Where the books of today are not what was charged, the detail of a statement is about the books of today.
with charged as (
    select team_id, project_id, component, allocation_kind, currency, amount from month_lines where allocation_kind <> 'true_up'
    union all
    select team_id, project_id, component, allocation_kind, currency, -amount from books
),

gaps as (
    select team_id, currency, component, project_id, allocation_kind, sum(amount) as gap
    from charged
    where team_id in (select team_id from month_lines)
    group by all
    having sum(amount) <> 0
)

select
    gaps.team_id,
    gaps.currency,
    count(*) as line_count,
    coalesce(any_value(team_books.amount), 0) as booked_amount,
    coalesce(any_value(team_books.amount), 0) + sum(gaps.gap) as charged_amount
from gaps
left join team_books on gaps.team_id = team_books.team_id and gaps.currency = team_books.currency
group by gaps.team_id, gaps.currency
order by gaps.team_id, gaps.currency desc
