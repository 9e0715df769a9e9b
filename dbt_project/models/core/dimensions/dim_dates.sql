-- grain: one row per UTC day that has been built
select
    usage_date,
    cast(extract(year from usage_date) as int64) as calendar_year,
    cast(extract(quarter from usage_date) as int64) as calendar_quarter,
    {{ month_of('usage_date') }} as month_date,
    {{ weekday_of('usage_date') }} as weekday,
    {{ weekday_of('usage_date') }} >= 6 as is_weekend,
    policy_hash,
    input_hash,
    landed_rows,
    quarantined_rows
from {{ ref('fct_days') }}
