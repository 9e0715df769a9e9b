-- grain: one row per pool, hourly component and hour: how its capacity was spent, in the component's integer weights
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set idle_causes = ['down', 'reserved', 'stranded', 'unscheduled'] %}

with node_hours as (
    select * from {{ ref('int_node_hours') }}
),

node_energy as (
    select * from {{ ref('int_node_energy') }}
),

energy_rates as (
    select * from {{ ref('int_energy_rates') }}
),

energy_used as (
    select
        usage_date,
        hour_ms,
        pool_id,
        sum(energy) as used
    from {{ ref('int_job_pool_hours') }}
    group by usage_date, hour_ms, pool_id
),

energy_idle as (
    select
        {%- for cause in idle_causes %}
        sum(
            case
                when energy_rates.is_measured and node_energy.node_name is not null then node_energy.{{ cause }}_energy
                when energy_rates.is_measured
                    then {{ share('node_hours.gpu_' ~ cause, 'energy_rates.idle_energy', 'energy_rates.idle_time', 0) }}
                when energy_rates.has_gpu_time then node_hours.gpu_{{ cause }}
                else node_hours.cpu_{{ cause }}
            end
        ) as {{ cause }},
        {%- endfor %}
        node_hours.usage_date,
        node_hours.hour_ms,
        node_hours.pool_id,
        energy_rates.is_measured
    from node_hours
    inner join energy_rates
        on node_hours.usage_date = energy_rates.usage_date and node_hours.pool_id = energy_rates.pool_id
    left join node_energy on {{ equal_on('node_hours', 'node_energy', node_hour) }}
    group by node_hours.usage_date, node_hours.hour_ms, node_hours.pool_id, energy_rates.is_measured
),

final as (
    {%- for component in ['gpu', 'cpu', 'memory'] %}
    select
        usage_date,
        hour_ms,
        pool_id,
        '{{ component }}' as component,
        true as is_measured,
        sum({{ component }}_held) as used,
        sum({{ component }}_down) as down,
        sum({{ component }}_reserved) as reserved,
        sum({{ component }}_stranded) as stranded,
        sum({{ component }}_unscheduled) as unscheduled
    from node_hours
    group by usage_date, hour_ms, pool_id
    union all
    {%- endfor %}
    select
        energy_idle.usage_date,
        energy_idle.hour_ms,
        energy_idle.pool_id,
        'energy' as component,
        energy_idle.is_measured,
        coalesce(energy_used.used, 0) as used,
        {{ qualified('energy_idle', idle_causes) }}
    from energy_idle
    left join energy_used on energy_idle.hour_ms = energy_used.hour_ms and energy_idle.pool_id = energy_used.pool_id
)

select * from final
