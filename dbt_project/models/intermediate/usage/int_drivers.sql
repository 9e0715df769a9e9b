-- grain: one row per UTC day, hour (none for drivers that work by day), pool, driver and payer (down to the job)
-- The one long table of quantities that costs follow. Quantities are integers in the driver's smallest unit; the weight is
-- what the pool's method makes of the quantity. A new driver by day is a new branch of int_served_drivers.
-- What jobs hold by the hour lies in columns side by side before (int_job_pool_hours), where splits of all jobs read it.
-- Where energy was not measured, `kwh` rows hold GPU time instead, which serves to split the pool's own energy cost and
-- nothing else (`is_measured` is false).
{%- set hourly_drivers = {
    'gpu_seconds': ['gpu_held', 'gpu_weight'],
    'cpu_core_seconds': ['cpu_held', 'cpu_weight'],
    'memory_gib_seconds': ['memory_held', 'memory_weight'],
    'kwh': ['energy', 'energy_weight'],
} %}
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}

with hourly as (
    {%- for driver, (quantity, weight) in hourly_drivers.items() %}
    select
        job_hours.usage_date,
        job_hours.hour_ms,
        job_hours.pool_id,
        '{{ driver }}' as driver,
        {{ qualified('job_payers', payer) }},
        {{ 'job_hours.is_energy_measured' if driver == 'kwh' else 'true' }} as is_measured,
        job_hours.{{ quantity }} as quantity,
        job_hours.{{ weight }} as weight
    from {{ ref('int_job_pool_hours') }} as job_hours
    inner join {{ ref('int_job_payers') }} as job_payers on job_hours.job_number = job_payers.job_number
    where job_hours.{{ quantity }} > 0
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
),

final as (
    select
        usage_date,
        hour_ms,
        pool_id,
        driver,
        {{ payer | join(', ') }},
        is_measured,
        quantity,
        weight
    from hourly
    union all
    select
        usage_date,
        cast(null as int64) as hour_ms,
        pool_id,
        driver,
        {{ payer | join(', ') }},
        true as is_measured,
        quantity,
        quantity as weight
    from {{ ref('int_served_drivers') }}
)

select * from final
