select
    books.team_id,
    books.currency,
    books.idle_cause,
    books.pool_id,
    any_value(pools.pool_name) as pool_name,
    books.reason,
    books.policy_row,
    any_value(policies.reason) as policy_reason,
    min(books.first_date) as first_date,
    max(books.last_date) as last_date,
    sum(books.amount) as amount
from books
left join marts.core.dim_pools as pools on books.pool_id = pools.pool_id
left join marts.core.dim_policies as policies on books.policy_row = policies.policy_row
where books.allocation_kind = 'idle'
group by books.team_id, books.currency, books.idle_cause, books.pool_id, books.reason, books.policy_row
order by books.team_id, books.currency desc, sum(books.amount) desc, books.idle_cause, books.pool_id, books.reason, books.policy_row
