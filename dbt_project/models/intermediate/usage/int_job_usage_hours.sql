-- grain: one row per job run, node, pool and hour: what it held, how busy it kept it, what energy it drew, what it weighs
-- The weight of a component is what its used cost follows: what was held, the time present (on the first node's row,
-- so that sums are right), or what was held times the weight of the workload class.
{%- set node_hour = ['usage_date', 'hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set of_job = ['partition_name', 'team_id', 'project_id', 'user_name'] %}
{%- set job_hour = 'partition by jobs.usage_date, jobs.hour_ms, jobs.pool_id, jobs.job_key' %}
{%- set policy_columns = ['method', 'intensity_metric', 'intensity_floor_thousandths', 'intensity_min_coverage_thousandths'] %}
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

with job_node_hours as (
    select * from {{ ref('int_job_node_hours') }}
),

gpu_hours as (
    select * from {{ ref('int_gpu_hours') }}
    where part_id is not null
),

activity as (
    select * from {{ ref('int_activity_hours') }}
),

energy as (
    select * from {{ ref('int_energy') }}
    where cause = 'used'
),

presence as (
    select
        usage_date,
        hour_ms,
        pool_id,
        job_key,
        sum(end_ms - start_ms) as present_ms
    from {{ ref('int_job_presence') }}
    group by usage_date, hour_ms, pool_id, job_key
),

classes as (
    select * from {{ ref('int_job_classes') }}
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
        usage_date,
        pool_id
    from {{ ref('int_allocation_policies') }}
    group by usage_date, pool_id
),

-- A node can leave a pool and come back within the hour: the part is still one.
parts as (
    select
        {{ node_hour | join(', ') }},
        part_number,
        {%- for column in ['job_key', 'part_id'] + of_job %}
        any_value({{ column }}) as {{ column }},
        {%- endfor %}
        max(gpu_model) as gpu_model,
        sum(held_ms) as held_ms,
        sum(gpu_device_ms) as gpu_device_ms,
        sum(gpu_held) as gpu_held,
        sum(cpu_held) as cpu_held,
        sum(memory_held) as memory_held
    from job_node_hours
    group by {{ node_hour | join(', ') }}, part_number
),

jobs as (
    select
        {{ qualified('parts', node_hour) }},
        parts.job_key,
        {%- for column in of_job %}
        any_value(parts.{{ column }}) as {{ column }},
        {%- endfor %}
        max(parts.gpu_model) as gpu_model,
        max(parts.held_ms) as held_ms,
        sum(parts.gpu_device_ms) as gpu_device_ms,
        sum(parts.gpu_held) as gpu_held,
        sum(parts.cpu_held) as cpu_held,
        sum(parts.memory_held) as memory_held,
        {%- for gauge in ['sm', 'tensor'] %}
        sum(activity.{{ gauge }}_sampled_ms) as {{ gauge }}_sampled_ms,
        sum(activity.{{ gauge }}_millipercent_ms) as {{ gauge }}_millipercent_ms,
        {%- endfor %}
        sum(gpu_hours.busy_sampled_ms) as busy_sampled_ms,
        sum(gpu_hours.busy_millipercent_ms) as busy_millipercent_ms
    from parts
    left join gpu_hours on {{ equal_on('parts', 'gpu_hours', node_hour) }} and parts.part_id = gpu_hours.part_id
    left join activity on {{ equal_on('parts', 'activity', node_hour) }} and parts.part_number = activity.part_number
    group by {{ qualified('parts', node_hour) }}, parts.job_key
),

described as (
    select
        jobs.*,
        coalesce(energy.weight, 0) as energy,
        coalesce(energy.is_measured, false) as is_energy_measured,
        classes.workload_class,
        -- The node's own model, also for a job that was there only while the inventory had lost the node.
        coalesce(
            max(jobs.gpu_model) over (partition by {{ qualified('jobs', node_hour) }}), pool_days.gpu_model
        ) as weighed_gpu_model
    from jobs
    inner join classes on jobs.usage_date = classes.usage_date and jobs.job_key = classes.job_key
    left join pool_days on jobs.usage_date = pool_days.usage_date and jobs.pool_id = pool_days.pool_id
    left join energy on {{ equal_on('jobs', 'energy', node_hour) }} and jobs.job_key = energy.job_key
),

kinds as (
    select distinct
        usage_date,
        workload_class,
        weighed_gpu_model as gpu_model
    from described
),

class_weights as (
    {{ most_specific('kinds', 'complexity_weights', ['workload_class', 'gpu_model'], ['weight_thousandths']) }}
),

-- Activity is judged over all nodes of the job in the pool and hour.
active as (
    select
        jobs.*,
        {%- for component, quantity in held.items() %}
        sum(jobs.{{ quantity }}) over ({{ job_hour }}) as job_{{ component }}_held,
        {%- for column in policy_columns %}
        policies.{{ component }}_{{ column }},
        {%- endfor %}
        {%- endfor %}
        {%- for gauge in ['sm', 'tensor'] %}
        sum(jobs.{{ gauge }}_sampled_ms) over ({{ job_hour }}) as job_{{ gauge }}_sampled_ms,
        sum(jobs.{{ gauge }}_millipercent_ms) over ({{ job_hour }}) as job_{{ gauge }}_millipercent_ms,
        {%- endfor %}
        sum(jobs.gpu_device_ms) over ({{ job_hour }}) as job_gpu_device_ms,
        row_number() over ({{ job_hour }} order by jobs.cluster_id, jobs.node_name) as node_number,
        coalesce(class_weights.weight_thousandths, 1000) as class_weight,
        coalesce(presence.present_ms, 0) as present_ms
    from described as jobs
    left join class_weights
        on
            jobs.usage_date = class_weights.usage_date
            and jobs.workload_class = class_weights.workload_class
            and coalesce(jobs.weighed_gpu_model, '') = coalesce(class_weights.gpu_model, '')
    left join presence
        on
            jobs.usage_date = presence.usage_date
            and jobs.hour_ms = presence.hour_ms
            and jobs.pool_id = presence.pool_id
            and jobs.job_key = presence.job_key
    left join policies on jobs.usage_date = policies.usage_date and jobs.pool_id = policies.pool_id
),

weighed as (
    select
        {%- for component, quantity in held.items() %}
        case {{ component }}_method
            when 'time' then case when node_number = 1 and job_{{ component }}_held > 0 then {{ as_weight('present_ms') }} else 0 end
            when 'complexity'
                then {{ quantity }} * class_weight * case
                    when {{ component }}_intensity_metric is null then 1
                    {%- for gauge in ['sm', 'tensor'] %}
                    when
                        {{ component }}_intensity_metric = '{{ gauge }}'
                        and job_{{ gauge }}_sampled_ms > 0
                        and job_gpu_device_ms > 0
                        and {{ as_weight('job_' ~ gauge ~ '_sampled_ms') }} * 1000
                        >= job_gpu_device_ms * {{ component }}_intensity_min_coverage_thousandths
                        then
                            {{ component }}_intensity_floor_thousandths * 1000
                            + (1000 - {{ component }}_intensity_floor_thousandths)
                            * {{ share('1', 'job_' ~ gauge ~ '_millipercent_ms', 'job_' ~ gauge ~ '_sampled_ms * 100', 0) }}
                    {%- endfor %}
                    else 1000000
                end
            else {{ quantity }}
        end as {{ component }}_method_weight,
        {%- endfor %}
        active.*
    from active
),

-- Where nobody weighs anything (all were idle, and the policy has no floor), what was held decides.
final as (
    select
        {{ node_hour | join(', ') }},
        job_key,
        partition_name,
        team_id,
        project_id,
        user_name,
        workload_class,
        held_ms,
        -- On the first node's row, so that sums are right.
        case when node_number = 1 then present_ms else 0 end as present_ms,
        gpu_held,
        cpu_held,
        memory_held,
        energy,
        is_energy_measured,
        busy_sampled_ms,
        busy_millipercent_ms,
        {%- for component, quantity in held.items() %}
        case
            when sum({{ component }}_method_weight) over (partition by usage_date, hour_ms, pool_id) > 0
                then {{ component }}_method_weight
            else {{ quantity }}
        end as {{ component }}_weight,
        {%- endfor %}
        class_weight
    from weighed
)

select * from final
