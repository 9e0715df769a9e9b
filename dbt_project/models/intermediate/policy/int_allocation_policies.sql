-- grain: one row per UTC day, pool and component that has cost or capacity: the allocation policy that applies, if any does
with cases as (
    select distinct
        usage_date,
        pool_id,
        component
    from {{ ref('int_charge_hours') }}
    union distinct
    select distinct
        usage_date,
        pool_id,
        component
    from {{ ref('int_daily_costs') }}
    union distinct
    select
        pool_days.usage_date,
        pool_days.pool_id,
        components.component
    from {{ ref('int_pool_days') }} as pool_days
    cross join {{ ref('int_components') }} as components
    where pool_days.pool_kind = 'compute' and components.cost_grain = 'hour'
),

policies as (
    select * from {{ ref('stg_policy__allocation_policies') }}
)

{{ most_specific(
    'cases', 'policies', ['pool_id', 'component'],
    [
        'method', 'overhead_base', 'burst_policy', 'lender_share', 'intensity_metric', 'intensity_floor_thousandths',
        'intensity_min_coverage_thousandths', 'idle_ceiling', 'policy_row', 'reason'
    ]
) }}
