-- When capacity stood idle and why; and when what a team held was not busy. Hours are UTC.

-- grain: one row per month, weekday, hour of the day, cause and currency
create temp table idle_costs as
with hours as (
    select
        days.month_date,
        isodow(pool_hours.usage_date) as weekday,
        hour(pool_hours.hour_at) as hour,
        pool_hours.currency,
        sum(pool_hours.unscheduled_cost) as unscheduled,
        sum(pool_hours.reserved_cost) as reserved,
        sum(pool_hours.down_cost) as down,
        sum(pool_hours.stranded_cost) as stranded
    from marts.core.fct_pool_hours as pool_hours
    inner join days on pool_hours.usage_date = days.usage_date
    group by all
)

select month_date, weekday, hour, currency, idle_cause, idle_cost
from hours
unpivot (idle_cost for idle_cause in (unscheduled, reserved, down, stranded));

-- A pool that is billed in several currencies has its hours in each of them: they count once.
-- grain: one row per month, weekday, hour of the day and cause
create temp table idle_gpu_hours as
with pool_hours as (
    select
        usage_date,
        hour_at,
        pool_id,
        any_value(capacity_hours) as capacity_hours,
        any_value(unscheduled_hours) as unscheduled,
        any_value(reserved_hours) as reserved,
        any_value(down_hours) as down,
        any_value(stranded_hours) as stranded
    from marts.core.fct_pool_hours
    where component = 'gpu'
    group by all
),

hours as (
    select
        days.month_date,
        isodow(pool_hours.usage_date) as weekday,
        hour(pool_hours.hour_at) as hour,
        sum(pool_hours.capacity_hours) as capacity_hours,
        sum(pool_hours.unscheduled) as unscheduled,
        sum(pool_hours.reserved) as reserved,
        sum(pool_hours.down) as down,
        sum(pool_hours.stranded) as stranded
    from pool_hours
    inner join days on pool_hours.usage_date = days.usage_date
    group by all
)

select month_date, weekday, hour, capacity_hours, idle_cause, idle_hours
from hours
unpivot (idle_hours for idle_cause in (unscheduled, reserved, down, stranded));

-- What pools with hours cost, idle or not: what the idle is a share of.
-- grain: one row per month and currency
create temp table pool_costs as
select days.month_date, pool_hours.currency, sum(pool_hours.cost) as cost
from marts.core.fct_pool_hours as pool_hours
inner join days on pool_hours.usage_date = days.usage_date
group by all;

-- Only hours with telemetry: no data is not idle.
-- grain: one row per month, team, weekday and hour of the day
create temp table held_hours as
select
    days.month_date,
    usage.team_id,
    isodow(usage.usage_date) as weekday,
    hour(usage.hour_at) as hour,
    sum(usage.gpu_seconds) / 3600 as gpu_hours,
    sum(usage.gpu_seconds * (1 - usage.busy_share)) / 3600 as held_idle_gpu_hours
from marts.core.fct_job_usage_hourly as usage
inner join days on usage.usage_date = days.usage_date
where usage.busy_share is not null and usage.gpu_seconds > 0
group by all;
