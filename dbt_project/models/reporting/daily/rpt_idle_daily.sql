-- grain: one row per UTC day, pool, hourly component, currency and idle cause
with pool_hours as (
    select * from {{ ref('fct_pool_hours') }}
    where {{ in_window('usage_date') }}
),

pools as (
    select * from {{ ref('fct_pool_days') }}
    where {{ in_window('usage_date') }}
),

causes as (
    {%- for cause in ['down', 'reserved', 'stranded', 'unscheduled'] %}
    select
        usage_date,
        pool_id,
        component,
        currency,
        '{{ cause }}' as idle_cause,
        sum({{ cause }}_hours) as idle_hours,
        sum(capacity_hours) as capacity_hours,
        sum({{ cause }}_cost) as idle_cost,
        sum(cost) as pool_cost
    from pool_hours
    group by usage_date, pool_id, component, currency
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

-- Hours have no currency: where a pool is billed in several, they stand on the first one's row, so that sums are right.
numbered as (
    select
        causes.*,
        {{ nano_units('idle_hours') }} as idle_weight,
        {{ nano_units('capacity_hours') }} as capacity_weight,
        row_number() over (partition by usage_date, pool_id, component, idle_cause order by currency) as currency_number
    from causes
),

final as (
    select
        causes.usage_date,
        {{ month_of('causes.usage_date') }} as month_date,
        causes.pool_id,
        coalesce(pools.pool_name, causes.pool_id) as pool_name,
        pools.cluster_id,
        pools.gpu_model,
        pools.purchase_class,
        causes.component,
        causes.currency,
        causes.idle_cause,
        case when causes.currency_number = 1 then cast(causes.idle_hours as numeric(38, 9)) end as idle_hours,
        case when causes.currency_number = 1 then cast(causes.capacity_hours as numeric(38, 9)) end as capacity_hours,
        {{ quotient('causes.idle_weight', 'causes.capacity_weight') }} as idle_share,
        cast(causes.idle_cost as numeric(38, 9)) as idle_cost,
        cast(causes.pool_cost as numeric(38, 9)) as pool_cost
    from numbered as causes
    left join pools on causes.usage_date = pools.usage_date and causes.pool_id = pools.pool_id
)

select * from final
