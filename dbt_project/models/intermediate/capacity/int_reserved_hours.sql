-- grain: one row per pool, hour and team: how much of the pool's reserved idle was held free for the team
-- What a node-hour's reservations left unused is divided over the teams that held them, by amount and reserved time.
{%- set resources = {'gpu': 'gpu_units', 'cpu': 'cpu_millicores', 'memory': 'memory_mib'} %}
{%- set node_hour = ['usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}

with stay_hours as (
    select * from {{ ref('int_stay_hours') }}
),

reservations as (
    select * from {{ ref('int_unavailable_time') }}
    where cause = 'reserved' and team_id is not null
),

node_hours as (
    select * from {{ ref('int_node_hours') }}
),

claims as (
    select
        {{ qualified('stay_hours', node_hour) }},
        {%- for resource, amount in resources.items() %}
        sum(
            {{ as_weight('stay_hours.' ~ amount) }} * (
                least(stay_hours.end_ms, reservations.end_ms) - greatest(stay_hours.start_ms, reservations.start_ms)
            )
        ) as {{ resource }}_claim,
        {%- endfor %}
        reservations.team_id
    from stay_hours
    inner join reservations
        on
            stay_hours.usage_date = reservations.usage_date
            and stay_hours.cluster_id = reservations.cluster_id
            and stay_hours.node_name = reservations.node_name
            and stay_hours.start_ms < reservations.end_ms
            and stay_hours.end_ms > reservations.start_ms
    group by {{ qualified('stay_hours', node_hour) }}, reservations.team_id
),

claimed as (
    select
        claims.*,
        node_hours.gpu_reserved,
        node_hours.cpu_reserved,
        node_hours.memory_reserved
    from claims
    inner join node_hours on {{ equal_on('claims', 'node_hours', node_hour) }}
),

{%- for resource in resources %}

{{ resource }}_parts as (
    {{ split(
        'claimed', [resource ~ '_reserved'], resource ~ '_claim', by=node_hour, order_by=['team_id'], scale=0
    ) }}
),
{%- endfor %}

final as (
    {%- for resource in resources %}
    select
        usage_date,
        hour_ms,
        pool_id,
        '{{ resource }}' as component,
        team_id,
        sum({{ resource }}_reserved_part) as weight
    from {{ resource }}_parts
    group by usage_date, hour_ms, pool_id, team_id
    {%- if not loop.last %}
    union all
    {%- endif %}
    {%- endfor %}
)

select * from final
where weight > 0
