-- grain: one row per day, pool, component, currency, payer, kind, cause and policy row: the books, worked out again
create or replace temp view recomputed as
with all_rows as (
    select * from books_before
    union all by name
    select usage_date, pool_id, component, currency, payer, 'adjustment' as allocation_kind, policy_row, true as is_recomputed, amount
    from adjustment_parts
    union all by name
    select usage_date, pool_id, component, currency, payer, 'adjustment' as allocation_kind, policy_row, true as is_recomputed, amount
    from funding_parts
)

select
    all_rows.usage_date,
    all_rows.pool_id,
    all_rows.component,
    all_rows.currency,
    payers.team_id,
    payers.project_id,
    payers.user_name,
    payers.job_key,
    payers.is_mine,
    all_rows.allocation_kind,
    all_rows.idle_cause,
    coalesce(all_rows.policy_row, methods.policy_row) as policy_row,
    bool_and(all_rows.is_recomputed) as is_recomputed,
    cast(sum(all_rows.amount) as decimal(38, 9)) as amount
from all_rows
inner join payers using (payer)
left join methods using (usage_date, pool_id, component)
group by all;
