-- grain: one row per UTC day, overhead base, team and project: the weight by which overhead is shared
with direct_costs as (
    select
        usage_date,
        currency,
        team_id,
        project_id,
        amount
    from {{ ref('int_allocations_direct') }}
    union all
    select
        usage_date,
        currency,
        team_id,
        project_id,
        amount
    from {{ ref('int_allocations_daily') }}
),

currencies as (
    select * from {{ ref('stg_reference__currencies') }}
),

drivers as (
    select * from {{ ref('int_drivers') }}
    where hour_ms is not null and driver = 'gpu_seconds'
),

by_currency as (
    select
        usage_date,
        currency,
        team_id,
        project_id,
        cast(sum(amount) as numeric(38, 9)) as amount
    from direct_costs
    where team_id <> 'platform'
    group by usage_date, currency, team_id, project_id
),

-- The reporting currency needs no rate; another one without a rate weighs nothing.
rated as (
    select
        by_currency.*,
        coalesce(
            currencies.rate_to_reporting,
            case
                when by_currency.currency = '{{ var("reporting_currency") }}' then cast(1 as numeric(38, 9))
                else cast(0 as numeric(38, 9))
            end
        ) as rate
    from by_currency
    left join currencies
        on by_currency.currency = currencies.currency and {{ valid_on('currencies', 'by_currency.usage_date') }}
),

in_reporting_currency as (
    select
        rated.usage_date,
        rated.team_id,
        rated.project_id,
        {{ times_rate('rated.amount', 'rated.rate') }} as amount
    from rated
),

final as (
    select
        usage_date,
        'direct_cost' as overhead_base,
        team_id,
        project_id,
        {{ nano_units('greatest(sum(amount), 0)') }} as weight
    from in_reporting_currency
    group by usage_date, team_id, project_id
    union all
    select
        usage_date,
        'gpu_hours' as overhead_base,
        team_id,
        project_id,
        sum(quantity) as weight
    from drivers
    group by usage_date, team_id, project_id
)

select * from final
