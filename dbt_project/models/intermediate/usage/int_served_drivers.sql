-- grain: one row per UTC day, pool, driver that works by day and payer (down to the job)
-- What pools serve whose cost follows a driver by day: jobs by what they hold, bytes sent, storage, seats. Quantities
-- are integers in the driver's smallest unit.
{%- set hourly_drivers = {
    'gpu_seconds': 'gpu_held',
    'cpu_core_seconds': 'cpu_held',
    'memory_gib_seconds': 'memory_held',
    'kwh': 'energy',
} %}
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}

with job_parts as (
    select * from {{ ref('int_job_parts') }}
),

storage_usage as (
    select * from {{ ref('stg_storage__usage') }}
),

seats as (
    select * from {{ ref('stg_license__seats') }}
),

payers as (
    select * from {{ ref('int_payers') }}
),

days as (
    select * from {{ ref('int_days') }}
),

-- The pools whose cost follows a driver by day. A pool serves a cluster or one of its partitions (with no cluster: all
-- of them), a filesystem, or a licensed product.
asked_for as (
    select distinct
        pool_id,
        driver
    from {{ ref('stg_policy__cost_rules') }}
    where driver is not null
),

serving_pools as (
    select
        pools.*,
        asked_for.driver
    from {{ ref('stg_policy__pools') }} as pools
    inner join asked_for on pools.pool_id = asked_for.pool_id
),

-- Most companies have no pool that serves others by what they hold, and need not look at all jobs for it.
served_days as (
    select distinct days.usage_date
    from days
    inner join serving_pools on {{ valid_on('serving_pools', 'days.usage_date') }}
    where
        serving_pools.pool_kind <> 'compute'
        and serving_pools.driver in (
            '{{ hourly_drivers | join("', '") }}'
        )
),

served_jobs as (
    select
        job_days.*,
        job_payers.cluster_id,
        job_payers.partition_name,
        {{ qualified('job_payers', payer) }}
    from {{ ref('int_job_pool_days') }} as job_days
    inner join served_days on job_days.usage_date = served_days.usage_date
    inner join {{ ref('int_job_payers') }} as job_payers on job_days.job_number = job_payers.job_number
),

held as (
    {%- for driver, quantity in hourly_drivers.items() %}
    select
        usage_date,
        cluster_id,
        partition_name,
        '{{ driver }}' as driver,
        {{ payer | join(', ') }},
        {{ quantity }} as quantity
    from served_jobs
    where {{ quantity }} > 0{{ ' and is_energy_measured' if driver == 'kwh' }}
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

served as (
    select
        held.usage_date,
        serving_pools.pool_id,
        held.driver,
        {{ qualified('held', payer) }},
        sum(held.quantity) as quantity
    from held
    inner join serving_pools
        on
            held.driver = serving_pools.driver
            and serving_pools.pool_kind <> 'compute'
            and (serving_pools.cluster_id is null or held.cluster_id = serving_pools.cluster_id)
            and (serving_pools.partition_name is null or held.partition_name = serving_pools.partition_name)
            and {{ valid_on('serving_pools', 'held.usage_date') }}
    group by 1, 2, 3, 4, 5, 6, 7
),

sent as (
    select
        job_parts.usage_date,
        serving_pools.pool_id,
        'bytes_out' as driver,
        job_parts.team_id,
        job_parts.project_id,
        job_parts.payer_user_name as user_name,
        job_parts.job_key,
        sum(
            case
                when job_parts.run_ms = 0 then {{ as_weight('job_parts.bytes_out') }}
                else {{ share(
                    'job_parts.bytes_out',
                    '(job_parts.part_end_ms - job_parts.part_start_ms)',
                    'job_parts.run_ms',
                    0
                ) }}
            end
        ) as quantity
    from job_parts
    inner join {{ ref('int_job_payers') }} as job_payers on job_parts.job_number = job_payers.job_number
    inner join serving_pools
        on
            serving_pools.driver = 'bytes_out'
            and (serving_pools.cluster_id is null or job_parts.cluster_id = serving_pools.cluster_id)
            and (serving_pools.partition_name is null or job_payers.partition_name = serving_pools.partition_name)
            and {{ valid_on('serving_pools', 'job_parts.usage_date') }}
    where job_parts.bytes_out > 0
    group by 1, 2, 3, 4, 5, 6, 7
),

stored as (
    select
        storage_usage.usage_date,
        serving_pools.pool_id,
        'gib_hours_stored' as driver,
        coalesce(payers.team_id, 'unattributed') as team_id,
        payers.project_id,
        storage_usage.user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        sum(
            {{ share('storage_usage.stored_bytes', '1', '1048576', 0) }} * (
                least(storage_usage.end_ms, days.day_end_ms) - greatest(storage_usage.start_ms, days.day_start_ms)
            )
        ) as quantity
    from storage_usage
    inner join days on storage_usage.usage_date = days.usage_date
    inner join serving_pools
        on
            storage_usage.filesystem = serving_pools.resource
            and serving_pools.driver = 'gib_hours_stored'
            and {{ valid_on('serving_pools', 'storage_usage.usage_date') }}
    left join payers
        on
            storage_usage.usage_date = payers.usage_date
            and {{ payer_subject_key(
                account='storage_usage.account', user_name='storage_usage.user_name', path='storage_usage.path'
            ) }} = payers.subject_key
    group by 1, 2, 3, 4, 5, 6, 7
),

seated as (
    select
        seats.usage_date,
        serving_pools.pool_id,
        'seat_hours' as driver,
        coalesce(payers.team_id, 'unattributed') as team_id,
        payers.project_id,
        seats.user_name,
        cast(null as {{ dbt.type_string() }}) as job_key,
        sum(
            {{ as_weight('seats.seats') }}
            * (least(seats.end_ms, days.day_end_ms) - greatest(seats.start_ms, days.day_start_ms))
        ) as quantity
    from seats
    inner join days on seats.usage_date = days.usage_date
    inner join serving_pools
        on
            seats.product = serving_pools.resource
            and serving_pools.driver = 'seat_hours'
            and {{ valid_on('serving_pools', 'seats.usage_date') }}
    left join payers
        on
            seats.usage_date = payers.usage_date
            and {{ payer_subject_key(account='seats.account', user_name='seats.user_name') }} = payers.subject_key
    group by 1, 2, 3, 4, 5, 6, 7
),

final as (
    {%- for served in ['served', 'sent', 'stored', 'seated'] %}
    select * from {{ served }}
    where quantity > 0
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select * from final
