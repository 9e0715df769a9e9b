-- grain: one row per workload class, `unclassified` among them
select
    workload_class,
    workload_class_name,
    description
from {{ ref('stg_reference__workload_classes') }}
union all
select
    'unclassified' as workload_class,
    'Unclassified' as workload_class_name,
    'Work that no workload rule knows' as description
