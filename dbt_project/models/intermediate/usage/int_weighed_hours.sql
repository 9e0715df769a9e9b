-- grain: one row per job run, node, pool and hour in pools whose policy weighs work: what each component weighs there
-- The time present, or what was held times the weight of the workload class and, if the policy says so, its activity. Many
-- companies weigh nothing, and this is empty.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set job_hour = ['hour_ms', 'pool_id', 'job_number'] %}
{%- set gauges = ['sm', 'tensor'] %}
{%- set policy_columns = ['method', 'intensity_metric', 'intensity_floor_thousandths', 'intensity_min_coverage_thousandths'] %}
{%- set of_row = ['usage_date'] + node_hour + [
    'job_number', 'held_ms', 'present_ms', 'gpu_held', 'cpu_held', 'memory_held', 'energy', 'is_energy_measured',
    'busy_sampled_ms', 'busy_millipercent_ms', 'class_weight',
] %}
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

with policies as (
    select
        {%- for component in held %}
        {%- for column in policy_columns %}
        max(case when component = '{{ component }}' then {{ column }} end) as {{ component }}_{{ column }},
        {%- endfor %}
        {%- endfor %}
        usage_date,
        pool_id
    from {{ ref('int_allocation_policies') }}
    group by usage_date, pool_id
),

weighing as (
    select
        {%- for component in held %}
        {%- for column in policy_columns %}
        policies.{{ component }}_{{ column }},
        {%- endfor %}
        {%- endfor %}
        {%- for gauge in gauges %}
        hours.{{ gauge }}_sampled_ms,
        hours.{{ gauge }}_millipercent_ms,
        {%- endfor %}
        hours.gpu_device_ms,
        {{ qualified('hours', of_row) }}
    from {{ ref('int_described_hours') }} as hours
    inner join policies on hours.usage_date = policies.usage_date and hours.pool_id = policies.pool_id
    where hours.has_weights
),

-- Activity is judged over all nodes of the job in the pool and hour, and so is what it holds.
job_hours as (
    select
        {{ job_hour | join(', ') }},
        {%- for component, quantity in held.items() %}
        sum({{ quantity }}) as {{ component }}_held,
        {%- endfor %}
        {%- for gauge in gauges %}
        sum({{ gauge }}_sampled_ms) as {{ gauge }}_sampled_ms,
        sum({{ gauge }}_millipercent_ms) as {{ gauge }}_millipercent_ms,
        {%- endfor %}
        sum(gpu_device_ms) as gpu_device_ms
    from weighing
    group by {{ job_hour | join(', ') }}
),

weighed as (
    select
        {%- for component, quantity in held.items() %}
        case weighing.{{ component }}_method
            when 'time'
                then case when job_hours.{{ component }}_held > 0 then {{ as_weight('weighing.present_ms') }} else 0 end
            when 'complexity'
                then {{ as_weight('weighing.' ~ quantity) }} * weighing.class_weight * case
                    when weighing.{{ component }}_intensity_metric is null then 1
                    {%- for gauge in gauges %}
                    when
                        weighing.{{ component }}_intensity_metric = '{{ gauge }}'
                        and job_hours.{{ gauge }}_sampled_ms > 0
                        and job_hours.gpu_device_ms > 0
                        and {{ as_weight('job_hours.' ~ gauge ~ '_sampled_ms') }} * 1000
                        >= job_hours.gpu_device_ms * weighing.{{ component }}_intensity_min_coverage_thousandths
                        then
                            weighing.{{ component }}_intensity_floor_thousandths * 1000
                            + (1000 - weighing.{{ component }}_intensity_floor_thousandths) * {{ share(
                                '1', 'job_hours.' ~ gauge ~ '_millipercent_ms', 'job_hours.' ~ gauge ~ '_sampled_ms * 100', 0
                            ) }}
                    {%- endfor %}
                    else 1000000
                end
            else {{ as_weight('weighing.' ~ quantity) }}
        end as {{ component }}_method_weight,
        {%- endfor %}
        weighing.*
    from weighing
    inner join job_hours on {{ equal_on('weighing', 'job_hours', job_hour) }}
),

-- Where nobody weighs anything (all were idle, and the policy has no floor), what was held decides.
pool_sums as (
    select
        {%- for component in held %}
        sum({{ component }}_method_weight) as {{ component }}_weight,
        {%- endfor %}
        hour_ms,
        pool_id
    from weighed
    group by hour_ms, pool_id
),

final as (
    select
        {%- for component, quantity in held.items() %}
        case
            when pool_sums.{{ component }}_weight = 0 then {{ as_weight('weighed.' ~ quantity) }}
            else weighed.{{ component }}_method_weight
        end as {{ component }}_weight,
        {%- endfor %}
        {{ qualified('weighed', of_row) }}
    from weighed
    inner join pool_sums on weighed.hour_ms = pool_sums.hour_ms and weighed.pool_id = pool_sums.pool_id
)

select * from final
