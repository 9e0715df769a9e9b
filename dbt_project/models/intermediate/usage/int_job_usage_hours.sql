-- grain: one row per job run, node, pool and hour: what it held, how busy it kept it, what energy it drew, what it weighs
-- The weight of a component is what its used cost follows: what was held, the time present (on the first node's row,
-- so that sums are right), or what was held times the weight of the workload class. Steps that only some policies need
-- (activity, sums of the hour) look at those policies' pools alone.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set job_hour = ['hour_ms', 'pool_id', 'job_number'] %}
{%- set gauges = ['sm', 'tensor'] %}
{%- set policy_columns = ['method', 'intensity_metric', 'intensity_floor_thousandths', 'intensity_min_coverage_thousandths'] %}
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

with payers as (
    select * from {{ ref('int_job_payers') }}
),

spans as (
    select * from {{ ref('int_job_spans') }}
),

node_energy as (
    select * from {{ ref('int_node_energy') }}
),

energy_rates as (
    select * from {{ ref('int_energy_rates') }}
),

pool_days as (
    select * from {{ ref('int_pool_days') }}
),

complexity_weights as (
    select * from {{ ref('stg_policy__complexity_weights') }}
),

policies as (
    select
        {%- for component in held %}
        {%- for column in policy_columns %}
        max(case when component = '{{ component }}' then {{ column }} end) as {{ component }}_{{ column }},
        {%- endfor %}
        {%- endfor %}
        max(case when coalesce(method, 'direct') <> 'direct' then 1 else 0 end) = 1 as has_weights,
        usage_date,
        pool_id
    from {{ ref('int_allocation_policies') }}
    group by usage_date, pool_id
),

came_and_went as (
    select
        {{ job_hour | join(', ') }},
        cast(sum(end_ms - start_ms) as int64) as present_ms
    from {{ ref('int_job_presence') }}
    where not is_one_stretch
    group by {{ job_hour | join(', ') }}
),

-- The node's own model, also for a job that was there only while the inventory had lost the node.
lost_nodes as (
    select distinct {{ node_hour | join(', ') }}
    from {{ ref('int_job_node_hours') }}
    where gpu_model is null
),

found_models as (
    select
        {{ qualified('lost_nodes', node_hour) }},
        max(node_hours.gpu_model) as gpu_model
    from lost_nodes
    inner join {{ ref('int_job_node_hours') }} as node_hours on {{ equal_on('lost_nodes', 'node_hours', node_hour) }}
    group by {{ qualified('lost_nodes', node_hour) }}
),

described as (
    select
        jobs.usage_date,
        {{ qualified('jobs', node_hour) }},
        jobs.job_number,
        jobs.held_ms,
        jobs.gpu_device_ms,
        jobs.gpu_held,
        jobs.cpu_held,
        jobs.memory_held,
        jobs.busy_sampled_ms,
        jobs.busy_millipercent_ms,
        {%- for gauge in gauges %}
        jobs.{{ gauge }}_sampled_ms,
        jobs.{{ gauge }}_millipercent_ms,
        {%- endfor %}
        coalesce(energy_rates.is_measured, false) as is_energy_measured,
        cast(
            case
                when energy_rates.is_measured and node_energy.node_name is not null
                    then coalesce(jobs.named_energy, 0) + coalesce(unnamed_energy.energy, 0)
                when energy_rates.is_measured
                    then {{ share('jobs.gpu_held', 'energy_rates.held_energy', 'energy_rates.held_time', 0) }}
                when energy_rates.has_gpu_time then jobs.gpu_held
                else jobs.cpu_held
            end as int64
        ) as energy,
        coalesce(spans.first_node_name = jobs.node_name, true) as is_on_first_node,
        case
            when spans.job_number is null then jobs.held_ms
            when spans.is_one_stretch then spans.end_ms - spans.start_ms
            else coalesce(came_and_went.present_ms, 0)
        end as present_ms,
        payers.workload_class,
        coalesce(jobs.gpu_model, found_models.gpu_model, pool_days.gpu_model) as weighed_gpu_model
    from {{ ref('int_job_hours') }} as jobs
    inner join payers on jobs.job_number = payers.job_number
    left join spans on {{ equal_on('jobs', 'spans', job_hour) }}
    left join came_and_went on {{ equal_on('jobs', 'came_and_went', job_hour) }}
    left join found_models on {{ equal_on('jobs', 'found_models', node_hour) }}
    left join pool_days on jobs.usage_date = pool_days.usage_date and jobs.pool_id = pool_days.pool_id
    left join energy_rates on jobs.usage_date = energy_rates.usage_date and jobs.pool_id = energy_rates.pool_id
    left join node_energy on {{ equal_on('jobs', 'node_energy', node_hour) }}
    left join {{ ref('int_unnamed_energy') }} as unnamed_energy
        on {{ equal_on('jobs', 'unnamed_energy', node_hour + ['job_number']) }}
),

-- More kinds of work and GPU than there were, but the jobs need not be gone through to find them.
gpu_models as (
    select
        usage_date,
        gpu_model
    from {{ ref('stg_inventory__nodes') }}
    union distinct
    select
        usage_date,
        gpu_model
    from pool_days
),

workload_classes as (
    select distinct
        usage_date,
        workload_class
    from {{ ref('int_job_classes') }}
),

kinds as (
    select
        workload_classes.usage_date,
        workload_classes.workload_class,
        gpu_models.gpu_model
    from workload_classes
    inner join gpu_models on workload_classes.usage_date = gpu_models.usage_date
),

class_weights as (
    {{ most_specific('kinds', 'complexity_weights', ['workload_class', 'gpu_model'], ['weight_thousandths']) }}
),

-- Activity is judged over all nodes of the job in the pool and hour, and so is what it holds.
job_hours as (
    select
        {{ qualified('described', job_hour) }},
        {%- for component, quantity in held.items() %}
        sum(described.{{ quantity }}) as {{ component }}_held,
        {%- endfor %}
        {%- for gauge in gauges %}
        sum(described.{{ gauge }}_sampled_ms) as {{ gauge }}_sampled_ms,
        sum(described.{{ gauge }}_millipercent_ms) as {{ gauge }}_millipercent_ms,
        {%- endfor %}
        sum(described.gpu_device_ms) as gpu_device_ms
    from described
    inner join policies on described.usage_date = policies.usage_date and described.pool_id = policies.pool_id
    where policies.has_weights
    group by {{ qualified('described', job_hour) }}
),

weighed as (
    select
        {%- for component, quantity in held.items() %}
        case policies.{{ component }}_method
            when 'time'
                then case
                    when described.is_on_first_node and job_hours.{{ component }}_held > 0 then {{ as_weight('described.present_ms') }}
                    else 0
                end
            when 'complexity'
                then {{ as_weight('described.' ~ quantity) }} * coalesce(class_weights.weight_thousandths, 1000) * case
                    when policies.{{ component }}_intensity_metric is null then 1
                    {%- for gauge in gauges %}
                    when
                        policies.{{ component }}_intensity_metric = '{{ gauge }}'
                        and job_hours.{{ gauge }}_sampled_ms > 0
                        and job_hours.gpu_device_ms > 0
                        and {{ as_weight('job_hours.' ~ gauge ~ '_sampled_ms') }} * 1000
                        >= job_hours.gpu_device_ms * policies.{{ component }}_intensity_min_coverage_thousandths
                        then
                            policies.{{ component }}_intensity_floor_thousandths * 1000
                            + (1000 - policies.{{ component }}_intensity_floor_thousandths) * {{ share(
                                '1', 'job_hours.' ~ gauge ~ '_millipercent_ms', 'job_hours.' ~ gauge ~ '_sampled_ms * 100', 0
                            ) }}
                    {%- endfor %}
                    else 1000000
                end
            else {{ as_weight('described.' ~ quantity) }}
        end as {{ component }}_method_weight,
        {%- endfor %}
        coalesce(policies.has_weights, false) as has_weights,
        coalesce(class_weights.weight_thousandths, 1000) as class_weight,
        described.*
    from described
    left join class_weights
        on
            described.usage_date = class_weights.usage_date
            and described.workload_class = class_weights.workload_class
            and coalesce(described.weighed_gpu_model, '') = coalesce(class_weights.gpu_model, '')
    left join policies on described.usage_date = policies.usage_date and described.pool_id = policies.pool_id
    left join job_hours on {{ equal_on('described', 'job_hours', job_hour) }}
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
    where has_weights
    group by hour_ms, pool_id
),

final as (
    select
        weighed.usage_date,
        {{ qualified('weighed', node_hour) }},
        weighed.job_number,
        weighed.held_ms,
        -- On the first node's row, so that sums are right.
        case when weighed.is_on_first_node then weighed.present_ms else 0 end as present_ms,
        weighed.gpu_held,
        weighed.cpu_held,
        weighed.memory_held,
        weighed.energy,
        weighed.is_energy_measured,
        weighed.busy_sampled_ms,
        weighed.busy_millipercent_ms,
        {%- for component, quantity in held.items() %}
        case
            when pool_sums.{{ component }}_weight = 0 then {{ as_weight('weighed.' ~ quantity) }}
            else weighed.{{ component }}_method_weight
        end as {{ component }}_weight,
        {%- endfor %}
        weighed.class_weight
    from weighed
    left join pool_sums on weighed.hour_ms = pool_sums.hour_ms and weighed.pool_id = pool_sums.pool_id
)

select * from final
