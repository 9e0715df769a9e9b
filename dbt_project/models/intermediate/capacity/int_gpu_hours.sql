-- grain: one row per node, pool, hour and named workload part (or none): what the GPU samples of that hour add up to
-- The samples are read once, straight from Parquet. Only where a node changes pool inside an hour are that hour's
-- samples read again, to give each pool its own.
-- (No import CTE for them: one that is used twice is copied into memory first.)
-- Energy is what a GPU's counter added between the first and the last sample, carried over to the time that the samples
-- stand for. A counter that fell or stood still in between, or that was read too rarely to know whose energy it is, does
-- not count; then power times time does.
-- To find a group's first and last reading without sorting, instant and counter are one number: milliseconds since the hour
-- began * 2^41 + the counter's lowest 41 bits. They stand for the whole counter, since no GPU draws 2^41 millijoules in an
-- hour; one that seems to (it is 611 kW) is not believed.
{%- set instant_weight = 2199023255552 %}
{%- set reading = '(samples.sampled_ms - ' ~ hour_start_ms('samples.sampled_ms') ~ ') * ' ~ instant_weight
    ~ ' + mod(samples.energy_counter_mj, ' ~ instant_weight ~ ')' %}
{%- set added_microjoules = as_weight('1000 * (counter_greatest_mj - counter_least_mj)') %}

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
        cast(sum(case when samples.busy_millipercent is not null then samples.interval_ms else 0 end) as int64) as busy_sampled_ms,
        cast(sum(samples.busy_millipercent * samples.interval_ms) as int64) as busy_millipercent_ms,
        cast(sum(case when samples.power_milliwatts is not null then samples.interval_ms else 0 end) as int64) as power_sampled_ms,
        coalesce(sum(samples.power_milliwatts * samples.interval_ms), 0) as power_microjoules,
        cast(sum(case when samples.energy_counter_mj is not null then samples.interval_ms else 0 end) as int64) as counter_sampled_ms,
        min(samples.energy_counter_mj) as counter_least_mj,
        max(samples.energy_counter_mj) as counter_greatest_mj,
        min({{ reading }}) as counter_first,
        max({{ reading }}) as counter_last
{%- endset %}

in_hours as (
    select
        samples.cluster_id,
        samples.node_name,
        {{ hour_start_ms('samples.sampled_ms') }} as hour_ms,
        samples.gpu_index,
        samples.part_id,
        {{- sums }}
    from {{ ref('stg_telemetry__gpu_samples') }} as samples
    group by 1, 2, 3, 4, 5
),

in_broken_hours as (
    select
        broken_hours.cluster_id,
        broken_hours.node_name,
        broken_hours.hour_ms,
        samples.gpu_index,
        samples.part_id,
        {{- sums }},
        broken_hours.usage_date,
        broken_hours.pool_id
    from {{ ref('stg_telemetry__gpu_samples') }} as samples
    inner join broken_hours
        on
            samples.usage_date = broken_hours.usage_date
            and samples.cluster_id = broken_hours.cluster_id
            and samples.node_name = broken_hours.node_name
            and samples.sampled_ms >= broken_hours.start_ms
            and samples.sampled_ms < broken_hours.end_ms
    group by 1, 2, 3, 4, 5, broken_hours.usage_date, broken_hours.pool_id
),

gpus as (
    select
        in_hours.*,
        whole_hours.usage_date,
        whole_hours.pool_id
    from in_hours
    inner join whole_hours
        on
            in_hours.cluster_id = whole_hours.cluster_id
            and in_hours.node_name = whole_hours.node_name
            and in_hours.hour_ms = whole_hours.hour_ms
    union all
    select * from in_broken_hours
),

read as (
    select
        *,
        {{ floor_divide('counter_first', instant_weight) }} as counter_first_ms,
        {{ floor_divide('counter_last', instant_weight) }} as counter_last_ms
    from gpus
),

metered as (
    select
        *,
        coalesce(
            counter_least_mj < counter_greatest_mj
            and counter_greatest_mj - counter_least_mj < {{ instant_weight }}
            and mod(counter_first, {{ instant_weight }}) = mod(counter_least_mj, {{ instant_weight }})
            and mod(counter_last, {{ instant_weight }}) = mod(counter_greatest_mj, {{ instant_weight }})
            and counter_last_ms > counter_first_ms
            and counter_last_ms - counter_first_ms <= counter_sampled_ms,
            false
        ) as is_metered
    from read
),

measured as (
    select
        *,
        case when is_metered then counter_sampled_ms else power_sampled_ms end as energy_sampled_ms,
        case
            when is_metered
                then {{ share(added_microjoules, 'counter_sampled_ms', 'counter_last_ms - counter_first_ms', 0) }}
            else power_microjoules
        end as energy_microjoules
    from metered
),

final as (
    select
        usage_date,
        hour_ms,
        cluster_id,
        node_name,
        pool_id,
        part_id,
        cast(sum(busy_sampled_ms) as int64) as busy_sampled_ms,
        cast(sum(busy_millipercent_ms) as int64) as busy_millipercent_ms,
        cast(sum(energy_sampled_ms) as int64) as energy_sampled_ms,
        sum(energy_microjoules) as energy_microjoules
    from measured
    group by usage_date, hour_ms, cluster_id, node_name, pool_id, part_id
)

select * from final
