-- grain: one row per day, pool, component, currency, payer, kind, cause and policy row: the books, worked out again
create or replace temp table recomputed as
with rows as (
    select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'direct' as allocation_kind, amount
    from direct_parts
    union all by name
    select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'direct' as allocation_kind,
        is_recomputed, amount
    from daily_parts
    union all by name
    select *, 'idle' as allocation_kind from idle_rows
    union all by name
    select usage_date, pool_id, component, currency, team_id, project_id, allocation_kind, amount from shared_parts
    union all by name
    select usage_date, pool_id, component, currency, team_id, allocation_kind, amount
    from books_before
    where allocation_kind = 'unattributed' and amount <> 0
        and (usage_date, pool_id, component, currency) in (select (usage_date, pool_id, component, currency) from hours)
    union all by name
    select usage_date, pool_id, 'gpu' as component, currency, team_id, project_id, user_name, job_key, 'burst' as allocation_kind,
        policy_row, amount
    from burst_parts
    union all by name
    select usage_date, pool_id, 'gpu' as component, currency, team_id, 'burst' as allocation_kind, policy_row, amount
    from lender_parts
    union all by name
    select *, 'outcome_credit' as allocation_kind from outcome_rows
    union all by name
    select usage_date, pool_id, component, currency, 'platform' as team_id, 'outcome_credit' as allocation_kind, policy_row,
        is_recomputed, -amount as amount
    from outcome_rows
    union all by name
    select usage_date, pool_id, component, currency, team_id, project_id, user_name, job_key, 'adjustment' as allocation_kind,
        policy_row, amount
    from adjustment_parts
    union all by name
    select usage_date, pool_id, component, currency, team_id, 'adjustment' as allocation_kind, policy_row, amount
    from funding_parts
)

select
    rows.usage_date,
    rows.pool_id,
    rows.component,
    rows.currency,
    rows.team_id,
    rows.project_id,
    rows.user_name,
    rows.job_key,
    rows.allocation_kind,
    rows.idle_cause,
    coalesce(rows.policy_row, methods.policy_row) as policy_row,
    bool_and(coalesce(rows.is_recomputed, true)) as is_recomputed,
    cast(sum(rows.amount) as decimal(38, 9)) as amount
from rows
left join methods using (usage_date, pool_id, component)
group by all;
