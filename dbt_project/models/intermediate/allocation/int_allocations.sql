-- grain: one row per UTC day, pool, component, currency, payer, allocation kind, idle cause, policy row and counterparty
{%- set no_text = 'cast(null as ' ~ dbt.type_string() ~ ')' %}

with books as (
    select * from {{ ref('int_books') }}
),

adjustments as (
    select * from {{ ref('int_adjustments') }}
),

final as (
    select * from books
    union all
    select
        usage_date,
        pool_id,
        component,
        currency,
        team_id,
        project_id,
        user_name,
        job_key,
        'adjustment' as allocation_kind,
        {{ no_text }} as idle_cause,
        policy_row,
        counterparty_team_id,
        {{ no_text }} as driver,
        {{ as_weight('null') }} as quantity,
        {{ no_text }} as method,
        reason,
        amount
    from adjustments
)

select * from final
