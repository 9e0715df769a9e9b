select
    books.team_id,
    books.currency,
    books.idle_cause,
    sum(books.amount) as amount,
    round(100 * cast(sum(books.amount) as double) / nullif(cast(any_value(team_books.amount) as double), 0), 1) as percent
from books
inner join team_books on books.team_id = team_books.team_id and books.currency = team_books.currency
where books.allocation_kind = 'idle'
group by grouping sets ((books.team_id, books.currency, books.idle_cause), (books.team_id, books.currency))
order by books.team_id, books.currency desc, books.idle_cause is null, sum(books.amount) desc, books.idle_cause
