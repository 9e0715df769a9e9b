-- grain: one row per part of a job run, node and UTC day: how much of each resource it holds there
-- A job's resources are split over its nodes by what each node has, evenly where a node is unknown that day. A job on one node
-- holds everything there.
{%- set resources = ['gpu_units', 'cpu_millicores', 'memory_mib'] %}
{%- set node_list = 'list_nodes.usage_date, list_nodes.cluster_id, list_nodes.node_names' %}

with job_parts as (
    select * from {{ ref('int_job_parts') }}
    where part_end_ms > part_start_ms
),

inventory as (
    select * from {{ ref('stg_inventory__nodes') }}
),

node_sizes as (
    select
        usage_date,
        cluster_id,
        node_name,
        gpu_units,
        cpu_millicores,
        memory_mib
    from inventory
    qualify row_number() over (partition by usage_date, cluster_id, node_name order by start_ms) = 1
),

-- Each distinct node list is expanded once, however many jobs ran on it.
node_lists as (
    select distinct
        usage_date,
        cluster_id,
        node_names
    from job_parts
),

list_nodes as (
    select distinct
        node_lists.usage_date,
        node_lists.cluster_id,
        node_lists.node_names,
        node_name
    from node_lists
    {{ cross_join_items('node_lists.node_names', 'node_name') }}
),

sized as (
    select
        list_nodes.usage_date,
        list_nodes.cluster_id,
        list_nodes.node_names,
        list_nodes.node_name,
        {%- for resource in resources %}
        case
            when
                count(node_sizes.node_name) over (partition by {{ node_list }}) < count(*) over (partition by {{ node_list }})
                or sum(node_sizes.{{ resource }}) over (partition by {{ node_list }}) = 0
                then 1
            else node_sizes.{{ resource }}
        end as {{ resource }}{% if not loop.last %},{% endif %}
        {%- endfor %}
    from list_nodes
    left join node_sizes
        on
            list_nodes.usage_date = node_sizes.usage_date
            and list_nodes.cluster_id = node_sizes.cluster_id
            and list_nodes.node_name = node_sizes.node_name
),

-- The split's running weights depend on the list alone, so they are summed once per list, not once per job.
running as (
    select
        {%- for resource in resources %}
        sum(list_nodes.{{ resource }}) over (
            partition by {{ node_list }} order by list_nodes.node_name
            rows between unbounded preceding and current row
        ) as running_{{ resource }},
        sum(list_nodes.{{ resource }}) over (partition by {{ node_list }}) as total_{{ resource }},
        {%- endfor %}
        count(*) over (partition by {{ node_list }}) as node_count,
        list_nodes.*
    from sized as list_nodes
),

final as (
    select
        job_parts.usage_date,
        job_parts.cluster_id,
        job_parts.job_number,
        job_parts.part_number,
        job_parts.part_id,
        job_parts.part_count = 1 and job_parts.is_only_one_of_its_name as is_whole_job,
        job_parts.partition_name,
        job_parts.part_start_ms,
        job_parts.part_end_ms,
        job_parts.run_ms,
        job_parts.suspended_ms,
        {%- for resource in resources %}
        {%- set before = '(running.running_' ~ resource ~ ' - running.' ~ resource ~ ')' %}
        case
            when running.node_count = 1 then job_parts.{{ resource }}
            else cast(
                {{ share('job_parts.' ~ resource, 'running.running_' ~ resource, 'running.total_' ~ resource, 0) }}
                - {{ share('job_parts.' ~ resource, before, 'running.total_' ~ resource, 0) }}
                as int64
            )
        end as {{ resource }},
        {%- endfor %}
        running.node_name
    from job_parts
    inner join running
        on
            job_parts.usage_date = running.usage_date
            and job_parts.cluster_id = running.cluster_id
            and job_parts.node_names = running.node_names
)

select * from final
