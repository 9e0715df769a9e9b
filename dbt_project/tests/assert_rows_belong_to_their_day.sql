{{ config(meta={"dagster": {"ref": {"name": "fct_job_usage_hourly"}}}) }}
-- law 8, half-open everywhere: the day of a row is the UTC day of its hour, hours are whole, and what is booked on a
-- day overlaps [day, next day)
with dated as (
    select
        'fct_job_usage_hourly' as fact,
        job_key as row_key,
        usage_date,
        {{ milliseconds('hour_at') }} as start_ms,
        {{ milliseconds('hour_at') }} + 3600000 as end_ms,
        true as is_hour
    from {{ ref('fct_job_usage_hourly') }}
    where {{ in_window('usage_date') }}
    union all
    select
        'fct_pool_hours' as fact,
        pool_id as row_key,
        usage_date,
        {{ milliseconds('hour_at') }} as start_ms,
        {{ milliseconds('hour_at') }} + 3600000 as end_ms,
        true as is_hour
    from {{ ref('fct_pool_hours') }}
    where {{ in_window('usage_date') }}
    union all
    select
        'fct_billed_costs' as fact,
        charge_key as row_key,
        usage_date,
        {{ milliseconds('spread_start_at') }} as start_ms,
        {{ milliseconds('spread_end_at') }} as end_ms,
        false as is_hour
    from {{ ref('fct_billed_costs') }}
    where {{ in_window('usage_date') }}
)

select
    fact,
    row_key,
    usage_date,
    {{ timestamp_of('start_ms') }} as start_at,
    {{ timestamp_of('end_ms') }} as end_at
from dated
where
    start_ms >= {{ day_start_ms('usage_date') }} + 86400000
    or end_ms <= {{ day_start_ms('usage_date') }}
    or (is_hour and start_ms < {{ day_start_ms('usage_date') }})
    or (is_hour and start_ms <> {{ hour_start_ms('start_ms') }})
