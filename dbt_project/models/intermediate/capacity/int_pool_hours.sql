-- grain: one row per pool, hourly component and hour: how its capacity was spent, in the component's integer weights
with node_hours as (
    select * from {{ ref('int_node_hours') }}
),

energy as (
    select * from {{ ref('int_energy') }}
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
        usage_date,
        hour_ms,
        pool_id,
        'energy' as component,
        max(case when is_measured then 1 else 0 end) = 1 as is_measured,
        {%- for cause in ['used', 'down', 'reserved', 'stranded', 'unscheduled'] %}
        sum(case when cause = '{{ cause }}' then weight else 0 end) as {{ cause }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from energy
    group by usage_date, hour_ms, pool_id
)

select * from final
