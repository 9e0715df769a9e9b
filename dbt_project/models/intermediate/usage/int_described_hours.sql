-- grain: one row per job run, node, pool and hour: what it held, how busy it kept it, what energy it drew, and its class's weight
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set job_hour = ['hour_ms', 'pool_id', 'job_number'] %}
{%- set gauges = ['sm', 'tensor'] %}

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

-- Pools in which something other than what is held counts.
weighing_pools as (
    select distinct
        usage_date,
        pool_id
    from {{ ref('int_allocation_policies') }}
    where method <> 'direct'
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
        -- On the first node's row, so that sums are right.
        case
            when spans.job_number is null then jobs.held_ms
            when spans.first_node_name <> jobs.node_name then 0
            when spans.is_one_stretch then spans.end_ms - spans.start_ms
            else coalesce(came_and_went.present_ms, 0)
        end as present_ms,
        weighing_pools.pool_id is not null as has_weights,
        payers.workload_class,
        coalesce(jobs.gpu_model, found_models.gpu_model, pool_days.gpu_model) as weighed_gpu_model
    from {{ ref('int_job_hours') }} as jobs
    inner join payers on jobs.job_number = payers.job_number
    left join spans on {{ equal_on('jobs', 'spans', job_hour) }}
    left join came_and_went on {{ equal_on('jobs', 'came_and_went', job_hour) }}
    left join found_models on {{ equal_on('jobs', 'found_models', node_hour) }}
    left join pool_days on jobs.usage_date = pool_days.usage_date and jobs.pool_id = pool_days.pool_id
    left join weighing_pools on jobs.usage_date = weighing_pools.usage_date and jobs.pool_id = weighing_pools.pool_id
    left join energy_rates on jobs.usage_date = energy_rates.usage_date and jobs.pool_id = energy_rates.pool_id
    left join node_energy on {{ equal_on('jobs', 'node_energy', node_hour) }}
    left join {{ ref('int_unnamed_energy') }} as unnamed_energy
        on {{ equal_on('jobs', 'unnamed_energy', node_hour + ['job_number']) }}
),

final as (
    select
        described.*,
        coalesce(class_weights.weight_thousandths, 1000) as class_weight
    from described
    left join class_weights
        on
            described.usage_date = class_weights.usage_date
            and described.workload_class = class_weights.workload_class
            and coalesce(described.weighed_gpu_model, '') = coalesce(class_weights.gpu_model, '')
)

select * from final
