-- grain: one row per cluster that nodes or jobs name
with nodes as (
    select * from {{ ref('fct_node_days') }}
),

jobs as (
    select * from {{ ref('fct_job_days') }}
),

clusters as (
    select
        cluster_id,
        scheduler,
        cast(null as {{ dbt.type_string() }}) as node_name
    from jobs
    union all
    select
        cluster_id,
        null as scheduler,
        node_name
    from nodes
)

select
    cluster_id,
    min(scheduler) as scheduler,
    count(distinct node_name) as node_count
from clusters
group by cluster_id
