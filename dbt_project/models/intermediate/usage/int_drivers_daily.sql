-- grain: one row per UTC day, pool, driver and payer (down to the job), where a charge of the day follows the driver
{%- set hourly_drivers = {
    'gpu_seconds': ['gpu_held', 'gpu_weight'],
    'cpu_core_seconds': ['cpu_held', 'cpu_weight'],
    'memory_gib_seconds': ['memory_held', 'memory_weight'],
    'kwh': ['energy', 'energy_weight'],
} %}
{%- set payer = ['team_id', 'project_id', 'user_name', 'job_key'] %}

with asked_for as (
    select distinct
        usage_date,
        pool_id,
        driver
    from {{ ref('int_daily_costs') }}
    where driver is not null and owner_team_id is null
),

-- Most charges follow no driver that jobs hold by the hour, and no job has to be looked at.
followed_pools as (
    select distinct
        usage_date,
        pool_id
    from asked_for
    where driver in ('{{ hourly_drivers | join("', '") }}')
),

job_days as (
    select
        job_days.*,
        {{ qualified('payers', payer) }}
    from {{ ref('int_job_pool_days') }} as job_days
    inner join followed_pools
        on job_days.usage_date = followed_pools.usage_date and job_days.pool_id = followed_pools.pool_id
    inner join {{ ref('int_job_payers') }} as payers on job_days.job_number = payers.job_number
),

quantities as (
    {%- for driver, (quantity, weight) in hourly_drivers.items() %}
    select
        job_days.usage_date,
        job_days.pool_id,
        asked_for.driver,
        {{ qualified('job_days', payer) }},
        {{ 'job_days.is_energy_measured' if driver == 'kwh' else 'true' }} as is_measured,
        job_days.{{ quantity }} as quantity,
        job_days.{{ weight }} as weight
    from job_days
    inner join asked_for
        on
            job_days.usage_date = asked_for.usage_date
            and job_days.pool_id = asked_for.pool_id
            and asked_for.driver = '{{ driver }}'
    where job_days.{{ quantity }} > 0
    union all
    {%- endfor %}
    select
        drivers.usage_date,
        drivers.pool_id,
        drivers.driver,
        {{ qualified('drivers', payer) }},
        true as is_measured,
        drivers.quantity,
        drivers.quantity as weight
    from {{ ref('int_served_drivers') }} as drivers
    inner join asked_for on {{ equal_on('drivers', 'asked_for', ['usage_date', 'pool_id', 'driver']) }}
)

select
    usage_date,
    pool_id,
    driver,
    {{ payer | join(', ') }},
    is_measured,
    sum(quantity) as quantity,
    sum(weight) as weight
from quantities
group by usage_date, pool_id, driver, {{ payer | join(', ') }}, is_measured
