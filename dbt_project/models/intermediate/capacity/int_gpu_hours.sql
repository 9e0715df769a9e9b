-- grain: one row per node, pool, hour and named workload part (or none): what the GPU samples of that hour add up to
-- The samples are read once, straight from Parquet. Only where a node changes pool inside an hour are that hour's
-- samples read again, to give each pool its own.
-- (No import CTE for them: one that is used twice is copied into memory first.)
-- Energy is what a GPU's counter added between the first and the last sample, carried over to the time that the samples
-- stand for. A counter that fell or stood still in between, or that was read too rarely to know whose energy it is, does
-- not count; then power times time does. Neither does one that seems to add 2^41 millijoules in an hour: it is 611 kW.
-- Whether the first reading is the least one is told without sorting: the least sum of instant and counter is the sum of
-- the least instant and the least counter only if one sample has both. The same goes for the last reading.

with stay_hours as (
    select
        *,
        {{ floor_divide('hour_ms', 3600000) }} as hour_number,
        -- Whose samples are read apart: a pool that has the node for a part of the hour.
        case when end_ms - start_ms < 3600000 then pool_id else '' end as pool_apart
    from {{ ref('int_stay_hours') }}
),

{%- set sums %}
        cast(sum(case when samples.busy_millipercent is not null then samples.interval_ms else 0 end) as int64) as busy_sampled_ms,
        cast(sum(samples.busy_millipercent * samples.interval_ms) as int64) as busy_millipercent_ms,
        cast(sum(case when samples.power_milliwatts is not null then samples.interval_ms else 0 end) as int64) as power_sampled_ms,
        coalesce(sum(samples.power_milliwatts * samples.interval_ms), 0) as power_microjoules,
        cast(sum(case when samples.energy_counter_mj is not null then samples.interval_ms else 0 end) as int64) as counter_sampled_ms,
        min(case when samples.energy_counter_mj is not null then samples.sampled_us end) as first_us,
        max(case when samples.energy_counter_mj is not null then samples.sampled_us end) as last_us,
        min(samples.energy_counter_mj) as counter_least_mj,
        max(samples.energy_counter_mj) as counter_greatest_mj,
        min(samples.sampled_us + samples.energy_counter_mj) as sum_least,
        max(samples.sampled_us + samples.energy_counter_mj) as sum_greatest
{%- endset %}

-- An hour is of one day, so that stretches of days can be added up apart.
in_hours as (
    {%- for days in window_stretches() %}
    select
        samples.cluster_id,
        samples.node_name,
        {{ floor_divide('samples.sampled_us', 3600000000) }} as hour_number,
        samples.gpu_index,
        samples.part_id,
        {{- sums }},
        '' as pool_apart
    from {{ ref('stg_telemetry__gpu_samples') }} as samples
    where {{ in_days('samples.usage_date', days) }}
    group by 1, 2, 3, 4, 5
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

in_broken_hours as (
    select
        stay_hours.cluster_id,
        stay_hours.node_name,
        stay_hours.hour_number,
        samples.gpu_index,
        samples.part_id,
        {{- sums }},
        stay_hours.pool_apart
    from {{ ref('stg_telemetry__gpu_samples') }} as samples
    inner join stay_hours
        on
            samples.usage_date = stay_hours.usage_date
            and samples.cluster_id = stay_hours.cluster_id
            and samples.node_name = stay_hours.node_name
            and samples.sampled_us >= 1000 * stay_hours.start_ms
            and samples.sampled_us < 1000 * stay_hours.end_ms
    where stay_hours.pool_apart <> ''
    group by 1, 2, 3, 4, 5, stay_hours.pool_apart
),

gpus as (
    select * from in_hours
    union all
    select * from in_broken_hours
),

read as (
    select
        *,
        {{ floor_divide('last_us', 1000) }} - {{ floor_divide('first_us', 1000) }} as counted_ms,
        counter_greatest_mj - counter_least_mj as added_mj
    from gpus
),

metered as (
    select
        *,
        coalesce(
            added_mj > 0
            and added_mj < 2199023255552
            and sum_least = first_us + counter_least_mj
            and sum_greatest = last_us + counter_greatest_mj
            and counted_ms > 0
            and counted_ms <= counter_sampled_ms,
            false
        ) as is_metered
    from read
),

measured as (
    select
        *,
        case when is_metered then counter_sampled_ms else power_sampled_ms end as energy_sampled_ms,
        case
            when is_metered then {{ share(as_weight('1000 * added_mj'), 'counter_sampled_ms', 'counted_ms', 0) }}
            else power_microjoules
        end as energy_microjoules
    from metered
),

parts as (
    select
        cluster_id,
        node_name,
        hour_number,
        pool_apart,
        part_id,
        cast(sum(busy_sampled_ms) as int64) as busy_sampled_ms,
        cast(sum(busy_millipercent_ms) as int64) as busy_millipercent_ms,
        cast(sum(energy_sampled_ms) as int64) as energy_sampled_ms,
        sum(energy_microjoules) as energy_microjoules
    from measured
    group by cluster_id, node_name, hour_number, pool_apart, part_id
),

-- A node can leave its pool and come back within the hour.
pools as (
    select distinct
        usage_date,
        hour_ms,
        hour_number,
        cluster_id,
        node_name,
        pool_id,
        pool_apart
    from stay_hours
),

final as (
    select
        pools.usage_date,
        pools.hour_ms,
        pools.cluster_id,
        pools.node_name,
        pools.pool_id,
        parts.part_id,
        parts.busy_sampled_ms,
        parts.busy_millipercent_ms,
        parts.energy_sampled_ms,
        parts.energy_microjoules
    from parts
    inner join pools on {{ equal_on('parts', 'pools', ['cluster_id', 'node_name', 'hour_number', 'pool_apart']) }}
)

select * from final
