-- grain: one row per UTC day, pool and component that has cost: the allocation policy that applies, if any does
with cases as (
    select distinct
        usage_date,
        pool_id,
        component
    from {{ ref('int_charge_cells') }}
),

policies as (
    select * from {{ ref('stg_policy__allocation_policies') }}
)

{{ most_specific('cases', 'policies', 'component', ['method', 'overhead_base', 'policy_row', 'reason']) }}
