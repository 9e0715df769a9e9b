-- grain: one row per node, pool, hour and named workload part (or none): what the GPU samples of that hour add up to
-- The samples are read once, straight from Parquet. Only where a node changes pool inside an hour are that hour's
-- samples read again, to give each pool its own.
-- (No import CTE for them: one that is used twice is copied into memory first.)
with stay_hours as (
    select * from {{ ref('int_stay_hours') }}
),

whole_hours as (
    select * from stay_hours
    where end_ms - start_ms = 3600000
),

broken_hours as (
    select * from stay_hours
    where end_ms - start_ms < 3600000
),

{%- set sums %}
        sum(case when samples.busy_millipercent is not null then samples.interval_ms else 0 end) as busy_sampled_ms,
        sum(samples.busy_millipercent * samples.interval_ms) as busy_millipercent_ms,
        sum(case when samples.power_milliwatts is not null then samples.interval_ms else 0 end) as power_sampled_ms,
        coalesce(sum(samples.power_milliwatts * samples.interval_ms), 0) as energy_microjoules
{%- endset %}

rolled_up as (
    select
        samples.usage_date,
        samples.cluster_id,
        samples.node_name,
        {{ hour_start_ms('samples.sampled_ms') }} as hour_ms,
        samples.part_id,
        {{- sums }}
    from {{ ref('stg_telemetry__gpu_samples') }} as samples
    group by 1, 2, 3, 4, 5
),

in_whole_hours as (
    select
        whole_hours.usage_date,
        whole_hours.hour_ms,
        whole_hours.cluster_id,
        whole_hours.node_name,
        whole_hours.pool_id,
        rolled_up.part_id,
        rolled_up.busy_sampled_ms,
        rolled_up.busy_millipercent_ms,
        rolled_up.power_sampled_ms,
        rolled_up.energy_microjoules
    from rolled_up
    inner join whole_hours
        on
            rolled_up.usage_date = whole_hours.usage_date
            and rolled_up.cluster_id = whole_hours.cluster_id
            and rolled_up.node_name = whole_hours.node_name
            and rolled_up.hour_ms = whole_hours.hour_ms
),

in_broken_hours as (
    select
        broken_hours.usage_date,
        broken_hours.hour_ms,
        broken_hours.cluster_id,
        broken_hours.node_name,
        broken_hours.pool_id,
        samples.part_id,
        {{- sums }}
    from {{ ref('stg_telemetry__gpu_samples') }} as samples
    inner join broken_hours
        on
            samples.usage_date = broken_hours.usage_date
            and samples.cluster_id = broken_hours.cluster_id
            and samples.node_name = broken_hours.node_name
            and samples.sampled_ms >= broken_hours.start_ms
            and samples.sampled_ms < broken_hours.end_ms
    group by 1, 2, 3, 4, 5, 6
),

final as (
    select * from in_whole_hours
    union all
    select * from in_broken_hours
)

select * from final
