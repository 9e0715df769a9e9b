-- grain: one row per job run, node, pool and hour: what it held, how busy it kept it, what energy it drew, what it weighs
-- The weight of a component is what its used cost follows: what was held, the time present (on the first node's row,
-- so that sums are right), or what was held times the weight of the workload class. Steps that only some policies need
-- (activity, sums of the hour) look at those policies' pools alone.
{%- set node_hour = ['hour_ms', 'cluster_id', 'node_name', 'pool_id'] %}
{%- set job_hour = ['hour_ms', 'pool_id', 'job_number'] %}
{%- set gauges = ['sm', 'tensor'] %}
{%- set policy_columns = ['method', 'intensity_metric', 'intensity_floor_thousandths', 'intensity_min_coverage_thousandths'] %}
{%- set held = {'gpu': 'gpu_held', 'cpu': 'cpu_held', 'memory': 'memory_held', 'energy': 'energy'} %}

with jobs as (
    select * from {{ ref('int_job_hours') }}
),

payers as (
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

-- Energy that no sample names, where jobs have a part in it.
claims as (
    select
        {{ qualified('jobs', node_hour) }},
        jobs.job_number,
        node_energy.unnamed_energy,
        node_energy.rest_energy,
        node_energy.claimed,
        case when node_energy.is_shared_by_named or jobs.named_energy is null then jobs.gpu_held else 0 end as weight,
        payers.job_key
    from jobs
    inner join node_energy on {{ equal_on('jobs', 'node_energy', node_hour) }}
    inner join payers on jobs.job_number = payers.job_number
    where node_energy.unnamed_energy <> 0 and jobs.gpu_held > 0
),

running_claims as (
    select
        claims.*,
        sum(weight) over (
            partition by {{ node_hour | join(', ') }} order by job_key
            rows between unbounded preceding and current row
        ) as running_weight
    from claims
),

unnamed_parts as (
    select
        {{ node_hour | join(', ') }},
        job_number,
        {{ part_of('rest_energy', 'weight', 'running_weight', 'claimed', 0) }} as energy
    from running_claims
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
    from jobs
    where gpu_model is null
),

found_models as (
    select
        {{ qualified('jobs', node_hour) }},
        max(jobs.gpu_model) as gpu_model
    from jobs
    inner join lost_nodes on {{ equal_on('jobs', 'lost_nodes', node_hour) }}
    group by {{ qualified('jobs', node_hour) }}
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
                    then coalesce(jobs.named_energy, 0) + coalesce(unnamed_parts.energy, 0)
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
    from jobs
    inner join payers on jobs.job_number = payers.job_number
    left join spans on {{ equal_on('jobs', 'spans', job_hour) }}
    left join came_and_went on {{ equal_on('jobs', 'came_and_went', job_hour) }}
    left join found_models on {{ equal_on('jobs', 'found_models', node_hour) }}
    left join pool_days on jobs.usage_date = pool_days.usage_date and jobs.pool_id = pool_days.pool_id
    left join energy_rates on jobs.usage_date = energy_rates.usage_date and jobs.pool_id = energy_rates.pool_id
    left join node_energy on {{ equal_on('jobs', 'node_energy', node_hour) }}
    left join unnamed_parts on {{ equal_on('jobs', 'unnamed_parts', node_hour + ['job_number']) }}
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
