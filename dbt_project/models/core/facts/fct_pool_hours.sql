-- grain: one row per pool, hourly component, currency and hour
-- Quantities are hours of the resource: GPU-hours, core-hours, GiB-hours, kWh. The rate is the cost of one such hour.
{%- set uses = ['used', 'down', 'reserved', 'stranded', 'unscheduled'] %}

with pool_hours as (
    select
        pool_hours.*,
        used + down + reserved + stranded + unscheduled as capacity,
        -- How many of the integer weight's units make one hour of the resource.
        case component
            when 'gpu' then {{ as_weight('90720000000') }}
            when 'cpu' then {{ as_weight('3600000000') }}
            when 'memory' then {{ as_weight('3686400000') }}
            -- Energy that only follows GPU time is no number of kilowatt-hours.
            when 'energy' then case when is_measured then {{ as_weight('3600000000000') }} end
        end as unit
    from {{ ref('int_pool_hour_facts') }} as pool_hours
)

select
    usage_date,
    {{ timestamp_of('hour_ms') }} as hour_at,
    pool_id,
    component,
    currency,
    cost,
    {{ quotient('capacity', 'unit') }} as capacity_hours,
    {%- for use in uses %}
    {{ quotient(use, 'unit') }} as {{ use }}_hours,
    {%- endfor %}
    {%- for use in uses %}
    {{ use }}_cost,
    {%- endfor %}
    {{ share('cost', 'unit', 'capacity') }} as rate,
    method,
    allocation_policy_row,
    idle_policy_rows
from pool_hours
