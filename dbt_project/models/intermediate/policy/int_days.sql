-- grain: one row per UTC day of the window
-- Each day carries the hash of the policy rows valid on it and of the records that it was built from, so that an
-- edited seed or a restated file marks stale exactly the days whose hash changed.
{%- set choices = [var('cost_basis'), var('reporting_currency'), var('minimum_coverage')] | join('/') %}

with window_days as (
    select {{ date_of('day_ms') }} as usage_date
    from (select 1 as one) as anchor
    {{ cross_join_series(
        day_start_ms("date '" ~ var('window_start') ~ "'"),
        day_start_ms("date '" ~ var('window_end') ~ "'"),
        86400000,
        'day_ms'
    ) }}
),

policy_rows as (
    select * from {{ ref('int_policy_rows') }}
),

landed_contents as (
    select
        landed.*,
        {{ dbt.concat(["source_name", "'/'", "table_name", "'/'", "content_hash"]) }} as content
    from {{ ref('stg_landing__days') }} as landed
),

policies as (
    select
        window_days.usage_date,
        -- What a run is told beside the seeds changes the books as well.
        {{ dbt.hash("'" ~ choices ~ "/' || string_agg(policy_rows.row_hash, ',' order by policy_rows.seed_name, policy_rows.row_hash)") }}
            as policy_hash
    from window_days
    inner join policy_rows on {{ valid_on('policy_rows', 'window_days.usage_date') }}
    group by window_days.usage_date
),

inputs as (
    select
        usage_date,
        {{ dbt.hash("string_agg(content, ',' order by source_name, table_name)") }} as input_hash,
        -- Apart, so that a change after a close can be told: a restated bill, or corrected records.
        {{ dbt.hash("string_agg(case when table_name = 'charges' then content end, ',' order by source_name, table_name)") }}
            as bill_hash,
        {{ dbt.hash("string_agg(case when table_name <> 'charges' then content end, ',' order by source_name, table_name)") }}
            as records_hash,
        sum(row_count) as landed_rows,
        sum(quarantined_count) as quarantined_rows
    from landed_contents
    group by usage_date
),

final as (
    select
        window_days.usage_date,
        {{ day_start_ms('window_days.usage_date') }} as day_start_ms,
        {{ day_start_ms('window_days.usage_date') }} + 86400000 as day_end_ms,
        coalesce(policies.policy_hash, '') as policy_hash,
        coalesce(inputs.input_hash, '') as input_hash,
        coalesce(inputs.bill_hash, '') as bill_hash,
        coalesce(inputs.records_hash, '') as records_hash,
        cast(coalesce(inputs.landed_rows, 0) as int64) as landed_rows,
        cast(coalesce(inputs.quarantined_rows, 0) as int64) as quarantined_rows
    from window_days
    left join policies on window_days.usage_date = policies.usage_date
    left join inputs on window_days.usage_date = inputs.usage_date
)

select * from final
