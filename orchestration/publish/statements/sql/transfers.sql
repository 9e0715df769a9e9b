-- Adjustments, credits and burst: each is somebody's decision, and many have a team on the other side.
select
    books.team_id,
    books.currency,
    books.allocation_kind,
    books.reason,
    books.policy_row,
    any_value(policies.reason) as policy_reason,
    string_agg(distinct counterparties.team_name, ', ' order by counterparties.team_name) as counterparties,
    min(books.first_date) as first_date,
    max(books.last_date) as last_date,
    sum(books.amount) as amount
from books
left join marts.core.dim_policies as policies on books.policy_row = policies.policy_row
left join marts.core.dim_teams as counterparties on books.counterparty_team_id = counterparties.team_id
where books.allocation_kind in ('adjustment', 'outcome_credit', 'burst')
group by books.team_id, books.currency, books.allocation_kind, books.reason, books.policy_row
order by books.team_id, books.currency desc, books.allocation_kind, sum(books.amount), books.reason, books.policy_row
