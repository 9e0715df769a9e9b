-- grain: one row per UTC day, pool and idle cause: the idle policy that applies, if any does
with causes as (
    {%- for cause in ['down', 'reserved', 'stranded', 'unscheduled'] %}
    select '{{ cause }}' as idle_cause
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

pool_days as (
    select distinct
        usage_date,
        pool_id
    from {{ ref('int_pool_hours') }}
),

cases as (
    select
        pool_days.usage_date,
        pool_days.pool_id,
        causes.idle_cause
    from pool_days
    cross join causes
),

policies as (
    select * from {{ ref('stg_policy__idle_policies') }}
)

{{ most_specific('cases', 'policies', ['pool_id', 'idle_cause'], ['policy', 'idle_window', 'policy_row', 'reason']) }}
